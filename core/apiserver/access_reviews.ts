import type { UntypedObject } from "../api/object.ts";
import { isJsonObject, type JsonObject } from "../patch/json_value.ts";
import type { ServerResponse } from "./http/exchange.ts";
import { representationOf, respondObject } from "./read/respond.ts";
import type { GroupResource } from "./registry.ts";
import { readObjectBody } from "./request/object_body.ts";
import { readWriteOptions } from "./request/query_options.ts";
import type { ResourceRequest } from "./request/resource_request.ts";
import { ADMINISTRATOR, type User } from "./request/user.ts";
import { fieldError, invalid } from "./status.ts";

/** Makes the status of one kind of review. */
type Reviewer = (spec: JsonObject, request: ResourceRequest) => JsonObject;

const REVIEWERS: ReadonlyMap<string, Reviewer> = new Map([
  ["authorization.k8s.io/selfsubjectaccessreviews", selfAccess],
  ["authorization.k8s.io/subjectaccessreviews", subjectAccess],
  ["authorization.k8s.io/localsubjectaccessreviews", subjectAccess],
  ["authorization.k8s.io/selfsubjectrulesreviews", selfRules],
  ["authentication.k8s.io/selfsubjectreviews", selfSubject],
  ["authentication.k8s.io/tokenreviews", token],
]);

/** Whether objects of a resource are questions, answered and not stored. */
export function isReview({ group, plural }: GroupResource): boolean {
  return REVIEWERS.has(`${group}/${plural}`);
}

/** Answers a review. */
export async function createReview(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request);
  const { group, plural } = request.definition;
  const options = readWriteOptions(request.query, "CreateOptions", {
    userAgent: request.http.headers["user-agent"],
    apply: false,
  });
  const review = await readObjectBody(request, options.fieldValidation);
  const spec = isJsonObject(review.spec) ? review.spec : {};
  const reviewer = REVIEWERS.get(`${group}/${plural}`) as Reviewer;
  const answered: UntypedObject = {
    ...review,
    metadata: { ...review.metadata, creationTimestamp: undefined },
    status: reviewer(spec, request),
  };
  return await respondObject(request, answered, {
    status: 201,
    representation,
  });
}

/** Whether somebody may do everything; nobody else may do anything here. */
function isAdministrator(user: User): boolean {
  return user.groups.includes("system:masters");
}

function verdict(user: User): JsonObject {
  return isAdministrator(user) ? { allowed: true } : {
    allowed: false,
    reason: "no rule allows it",
  };
}

function checkAttributes(spec: JsonObject, request: ResourceRequest): void {
  const given = [spec.resourceAttributes, spec.nonResourceAttributes]
    .filter((attributes) => attributes !== undefined && attributes !== null);
  if (given.length === 1) return;
  const { group } = request.definition;
  throw invalid({ group, kind: "" }, [{
    ...fieldError.invalid(
      "spec.resourceAttributes",
      "null",
      given.length === 0
        ? "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        : "cannot be specified in combination with nonResourceAttributes",
    ),
  }]);
}

function selfAccess(spec: JsonObject, request: ResourceRequest): JsonObject {
  checkAttributes(spec, request);
  return verdict(request.user);
}

function subjectAccess(spec: JsonObject, request: ResourceRequest): JsonObject {
  checkAttributes(spec, request);
  const groups = Array.isArray(spec.groups) ? spec.groups.map(String) : [];
  const name = typeof spec.user === "string" ? spec.user : "";
  const user = name === ADMINISTRATOR.name ? ADMINISTRATOR : { name, groups };
  return verdict(user);
}

function selfRules(_spec: JsonObject, request: ResourceRequest): JsonObject {
  const everything = isAdministrator(request.user);
  return {
    resourceRules: everything
      ? [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }]
      : [],
    nonResourceRules: everything
      ? [{ verbs: ["*"], nonResourceURLs: ["*"] }]
      : [],
    incomplete: false,
  };
}

function userInfo({ name, groups }: User): JsonObject {
  return { username: name, groups: [...groups] };
}

function selfSubject(_spec: JsonObject, request: ResourceRequest): JsonObject {
  return { userInfo: userInfo(request.user) };
}

function token(spec: JsonObject, request: ResourceRequest): JsonObject {
  const user = request.context.authenticate(String(spec.token ?? ""));
  return user === undefined
    ? { user: {}, error: "invalid bearer token" }
    : { authenticated: true, user: userInfo(user) };
}
