import type { Environment } from "@marcbachmann/cel-js";

/** Access check of one right, as in an access review. */
export interface AccessCheck {
  readonly path?: string | undefined;
  readonly group?: string | undefined;
  readonly resource?: string | undefined;
  readonly subresource?: string | undefined;
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
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

/** Registers the CEL variable `authorizer` with its functions. */
export function registerAuthorizer(environment: Environment): void {
  const types = { Authorizer, PathCheck, GroupCheck, ResourceCheck, Decision };
  for (const [name, ctor] of Object.entries(types)) {
    environment.registerType(P + name, {
      ctor,
      fields: name === "Authorizer"
        ? { requestResource: `${P}ResourceCheck` }
        : {},
    });
  }
  const method = (
    signature: string,
    // deno-lint-ignore no-explicit-any -- receivers are of the types above
    run: (receiver: any, ...texts: string[]) => unknown,
  ) =>
    environment.registerFunction(
      signature.replaceAll(/\b(?=(?:Authorizer|\w+Check|Decision)\b)/g, P),
      run,
    );
  method(
    "Authorizer.path(string): PathCheck",
    (self, path) => new PathCheck(self, { path }),
  );
  method(
    "Authorizer.group(string): GroupCheck",
    (self, group) => new GroupCheck(self, { group }),
  );
  method(
    "Authorizer.serviceAccount(string, string): Authorizer",
    (self: Authorizer, namespace, name = "") =>
      new Authorizer(self.decide, self.requestResource.check, {
        namespace: namespace as string,
        name,
      }),
  );
  method(
    "GroupCheck.resource(string): ResourceCheck",
    (self, resource) =>
      new ResourceCheck(self.authorizer, { ...self.check, resource }),
  );
  for (const field of ["subresource", "namespace", "name"]) {
    method(
      `ResourceCheck.${field}(string): ResourceCheck`,
      (self, text) =>
        new ResourceCheck(self.authorizer, { ...self.check, [field]: text }),
    );
  }
  method(
    "PathCheck.check(string): Decision",
    (self, verb) => self.decide(verb),
  );
  method(
    "ResourceCheck.check(string): Decision",
    (self, verb) => self.decide(verb),
  );
  method("Decision.allowed(): bool", (self) => self.answer.allowed);
  method("Decision.reason(): string", (self) => self.answer.reason);
  method("Decision.errored(): bool", () => false);
  method("Decision.error(): string", () => "");
  environment.registerVariable("authorizer", `${P}Authorizer`);
}
