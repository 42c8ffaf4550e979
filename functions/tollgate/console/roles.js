/** Roles that may use what views offer, as listed in `docs/people.md`. */

import { session } from "./api.js";

export const MANAGERS = ["management", "owner", "admin"];
export const READERS = [...MANAGERS, "read", "viewer"];
export const ACCOUNTANTS = [...READERS, "billing"];
export const PEOPLE = [...ACCOUNTANTS, "developer"];
export const EVERYBODY = [...PEOPLE, "inference"];
export const KEEPERS_OF_KEYS = [...MANAGERS, "developer"];
export const CALLERS = ["inference", "owner", "admin", "developer"];

/** Return whether the signed-in caller has one of the roles. */
export const has = (roles) => roles.includes(session.key.role);
