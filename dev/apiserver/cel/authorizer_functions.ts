import { labelProblems, subdomainProblems } from "../validation/names.ts";
import { CelFailure } from "./cel_errors.ts";
import { type CelType, struct } from "./cel_type.ts";
import { type FunctionTable, functionTable } from "./function_declaration.ts";
import { registerClass } from "./values.ts";

/** Access check of one right, as in an access review. */
export interface AccessCheck {
  readonly path?: string | undefined;
  readonly group?: string | undefined;
  readonly resource?: string | undefined;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly labelSelector?: string | undefined;
}

/** Answer to an access check. */
export interface AccessDecision {
  readonly allowed: boolean;
  readonly reason: string;
}

/** Function that decides whether a user has a right. */
export type Decide = (
  verb: string,
  check: AccessCheck,
  serviceAccount:
    | { readonly namespace: string; readonly name: string }
    | undefined,
) => AccessDecision;

/** Value of the CEL variable `authorizer`. */
export class Authorizer {
  readonly decide: Decide;
  readonly account: Parameters<Decide>[2];
  readonly requestResource: ResourceCheck;

  constructor(
    decide: Decide,
    request: AccessCheck,
    account?: Parameters<Decide>[2],
  ) {
    this.decide = decide;
    this.account = account;
    this.requestResource = new ResourceCheck(this, request);
  }
}

/** Access check that the CEL functions `authorizer.path` and `authorizer.group` begin. */
class Check {
  readonly authorizer: Pick<Authorizer, "decide" | "account">;
  readonly check: AccessCheck;

  constructor(
    authorizer: Pick<Authorizer, "decide" | "account">,
    check: AccessCheck,
  ) {
    this.authorizer = authorizer;
    this.check = check;
  }

  decide(verb: string): Decision {
    const { decide, account } = this.authorizer;
    return new Decision(decide(verb, this.check, account));
  }
}
class PathCheck extends Check {}
class GroupCheck extends Check {}
class ResourceCheck extends Check {}

class Decision {
  readonly answer: AccessDecision;
  constructor(answer: AccessDecision) {
    this.answer = answer;
  }
}

const P = "kubernetes.authorization.";

/** Type of the CEL variable `authorizer`. */
export const AUTHORIZER_TYPE: CelType = struct(`${P}Authorizer`);

/** Type of the CEL variable `authorizer.requestResource`. */
export const RESOURCE_CHECK_TYPE: CelType = struct(`${P}ResourceCheck`);

const PATH_CHECK_TYPE = struct(`${P}PathCheck`);
const GROUP_CHECK_TYPE = struct(`${P}GroupCheck`);
const DECISION_TYPE = struct(`${P}Decision`);

registerClass(Authorizer, { type: AUTHORIZER_TYPE });
registerClass(ResourceCheck, { type: RESOURCE_CHECK_TYPE });
registerClass(PathCheck, { type: PATH_CHECK_TYPE });
registerClass(GroupCheck, { type: GROUP_CHECK_TYPE });
registerClass(Decision, { type: DECISION_TYPE });

let table: FunctionTable | undefined;

/** Functions of the CEL variable `authorizer`. */
export function authorizerFunctions(): FunctionTable {
  return table ??= functionTable({
    "path(this Authorizer, string): PathCheck": (
      self: Authorizer,
      path: string,
    ) => new PathCheck(self, { path: notEmpty("path", path) }),
    "group(this Authorizer, string): GroupCheck": (
      self: Authorizer,
      group: string,
    ) => new GroupCheck(self, { group }),
    "serviceAccount(this Authorizer, string, string): Authorizer":
      serviceAccount,
    "resource(this GroupCheck, string): ResourceCheck": (
      { authorizer, check }: GroupCheck,
      resource: string,
    ) =>
      new ResourceCheck(authorizer, {
        ...check,
        resource: notEmpty("resource", resource),
      }),
    ...Object.fromEntries(
      ["subresource", "namespace", "name", "fieldSelector", "labelSelector"]
        .map((field) => [
          `${field}(this ResourceCheck, string): ResourceCheck`,
          ({ authorizer, check }: ResourceCheck, text: string) =>
            new ResourceCheck(authorizer, { ...check, [field]: text }),
        ]),
    ),
    "check(this PathCheck, string): Decision": (
      self: PathCheck,
      verb: string,
    ) => self.decide(verb),
    "check(this ResourceCheck, string): Decision": (
      self: ResourceCheck,
      verb: string,
    ) => self.decide(verb),
    "allowed(this Decision): bool": ({ answer }: Decision) => answer.allowed,
    "reason(this Decision): string": ({ answer }: Decision) => answer.reason,
    "errored(this Decision): bool": () => false,
    "error(this Decision): string": () => "",
  }, {
    Authorizer: AUTHORIZER_TYPE,
    PathCheck: PATH_CHECK_TYPE,
    GroupCheck: GROUP_CHECK_TYPE,
    ResourceCheck: RESOURCE_CHECK_TYPE,
    Decision: DECISION_TYPE,
  });
}

function notEmpty(name: string, text: string): string {
  if (text.trim() !== "") return text;
  throw new CelFailure(`${name} must not be empty`);
}

function serviceAccount(
  { decide, requestResource }: Authorizer,
  namespace: string,
  name: string,
): Authorizer {
  if (subdomainProblems(name).length > 0) {
    throw new CelFailure("Invalid service account name");
  }
  if (labelProblems(namespace).length > 0) {
    throw new CelFailure("Invalid service account namespace");
  }
  return new Authorizer(decide, requestResource.check, { namespace, name });
}
