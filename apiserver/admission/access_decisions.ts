import type { ResourceRequest } from "../request/resource_request.ts";
import type { Decide } from "./authorizer_functions.ts";

/** Decisions on the rights of the user of a request. */
export function decisionsFor({ user }: ResourceRequest): Decide {
  return (_verb, _check, account) =>
    account === undefined && user.groups.includes("system:masters")
      ? { allowed: true, reason: "" }
      : { allowed: false, reason: "" };
}
