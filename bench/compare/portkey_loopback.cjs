// Makes Portkey, which has no option for it, listen on this machine's loopback address alone.
const { Server } = require("node:net");
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
  return typeof port === "object"
    ? listen.call(this, { ...port, host: "127.0.0.1" }, ...rest)
    : listen.call(this, port, "127.0.0.1", ...rest.filter((each) => typeof each === "function"));
};
