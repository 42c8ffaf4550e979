/** Shows the base URLs of the host and stage that this page came from. */

import { show } from "./dom.js";
import { copyable } from "./parts.js";

const openai = new URL("v1", location.href).href;
show(document.getElementById("openai"), copyable(openai));
show(document.getElementById("anthropic"), copyable(openai.slice(0, -"/v1".length)));
show(document.getElementById("command"), copyable(`export TOLLGATE_URL=${openai}`));
