/** Shows the base URL of the host and stage that this page came from. */

import { show } from "./dom.js";
import { copyable } from "./parts.js";

show(document.getElementById("base"), copyable(new URL("v1", location.href).href));
