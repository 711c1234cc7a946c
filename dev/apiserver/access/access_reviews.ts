import { admitPosted } from "../admission/admission.ts";
import { type ObjectMeta, timestamp } from "@coracle/operator/client";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import { changeCauses } from "../builtin/validation/typed_validation.ts";
import type { ServerResponse } from "../http/exchange.ts";
import { updateManagedFields } from "../field_management.ts";
import { representationOf, respondObject } from "../read/respond.ts";
import type { GroupResource } from "../registry.ts";
import { goJson } from "../validation/go_value.ts";
import { checkBodySize } from "../request/body.ts";
import { bodyForm, readObjectBody } from "../request/object_body.ts";
import { readWriteOptions } from "../request/query_options.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import { type User, userInfo } from "../request/user.ts";
import { badRequest, invalid } from "../status.ts";
import { placeInNamespace } from "../write/create.ts";
import { accessAttributes } from "./attributes.ts";
import { aggregate } from "./role_authorizer.ts";

/** Kind of access review, with the function that answers it. */
interface Review {
  /**
   * Function that computes the status of a review.
   *
   * @throws {StatusError} If the review is invalid.
   */
  readonly answer: (spec: JsonObject, request: ResourceRequest) => JsonObject;
  /**
   * Fields of a response that omits the spec; undefined if the response repeats
   * the spec.
   */
  readonly answersAlone?: (time: string) => {
    readonly metadata: Partial<ObjectMeta>;
    readonly spec?: JsonObject;
  };
}

/** Fields of metadata in Go's order, where that is not alphabetical. */
const METADATA_ORDER = [
  ..."name generateName manager operation apiVersion time".split(" "),
];

const REVIEWS: ReadonlyMap<string, Review> = new Map<string, Review>([
  ["authorization.k8s.io/selfsubjectaccessreviews", { answer: selfAccess }],
  ["authorization.k8s.io/subjectaccessreviews", { answer: subjectAccess }],
  ["authorization.k8s.io/localsubjectaccessreviews", { answer: subjectAccess }],
  ["authorization.k8s.io/selfsubjectrulesreviews", {
    answer: selfRules,
    answersAlone: () => ({ metadata: {}, spec: {} }),
  }],
  ["authentication.k8s.io/selfsubjectreviews", {
    answer: selfSubject,
    answersAlone: (time) => ({ metadata: { creationTimestamp: time } }),
  }],
  ["authentication.k8s.io/tokenreviews", { answer: token }],
]);

/**
 * Whether a resource is a review, whose objects get a response but are not
 * stored.
 */
export function isReview({ group, plural }: GroupResource): boolean {
  return REVIEWS.has(`${group}/${plural}`);
}

/** Handles the creation of an access review. */
export async function createReview(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const representation = representationOf(request, { tables: false });
  const { group, plural } = request.definition;
  bodyForm(request);
  checkBodySize(request.http.body);
  const options = readWriteOptions(request, "CreateOptions");
  const posted = await readObjectBody(request, options.fieldValidation);
  const review = await admitPosted(request, posted, options);
  if (request.namespace !== undefined) placeInNamespace(request, review);
  const spec = isJsonObject(review.spec) ? review.spec : {};
  const time = timestamp(request.context.clock.wallTime());
  const { answer, answersAlone } = REVIEWS.get(`${group}/${plural}`) as Review;
  const causes = changeCauses(`${plural}.${group}`, review, {
    namespace: request.namespace ?? "",
    isDeclarative: request.context.release.isDeclarative,
  });
  if (causes.length > 0) throw invalid({ group, kind: "" }, causes);
  const status = answer(spec, request);
  if (!answersAlone) {
    const given = Object.keys(review.metadata).filter((name) =>
      name !== "namespace" || request.namespace === undefined
    );
    updateManagedFields(undefined, review, {
      definition: request.definition,
      version: request.version,
      manager: options.fieldManager,
      subresource: undefined,
      time,
    });
    if (given.length > 0 && group === "authorization.k8s.io") {
      const shown = goJson(review.metadata, METADATA_ORDER);
      throw invalid({ group, kind: "" }, [{
        reason: "FieldValueInvalid",
        message: `Invalid value: ${shown}: must be empty`,
        field: "metadata",
      }]);
    }
  }
  const shown = answersAlone?.(time);
  if (shown) Object.assign(review, shown);
  return await respondObject(request, { ...review, status }, {
    status: 201,
    representation,
  });
}

/** Status of an access review about a user. */
function verdict(
  { resourceAttributes: resource, nonResourceAttributes: path }: JsonObject,
  user: User,
  { context }: ResourceRequest,
): JsonObject {
  const { allowed, reason } = context.authorizer.decide(
    user,
    accessAttributes(isJsonObject(resource) ? resource : { ...path as object }),
  );
  return { allowed, ...reason !== "" && { reason } };
}

function selfAccess(spec: JsonObject, request: ResourceRequest): JsonObject {
  return verdict(spec, request.user, request);
}

function subjectAccess(spec: JsonObject, request: ResourceRequest): JsonObject {
  const groups = Array.isArray(spec.groups) ? spec.groups.map(String) : [];
  const name = typeof spec.user === "string" ? spec.user : "";
  return verdict(spec, { name, groups }, request);
}

function selfRules(
  { namespace }: JsonObject,
  request: ResourceRequest,
): JsonObject {
  if (!namespace) throw badRequest("no namespace on request");
  const { rules, errors } = request.context.authorizer.rulesOf(
    request.user,
    String(namespace),
  );
  return {
    resourceRules: rules.filter(({ resources = [] }) => resources.length > 0)
      .map(({ verbs, apiGroups, resources, resourceNames }) => ({
        verbs,
        apiGroups,
        resources,
        ...resourceNames && { resourceNames },
      })),
    nonResourceRules: rules.flatMap(({ verbs, nonResourceURLs = [] }) =>
      nonResourceURLs.length === 0 ? [] : [{ verbs, nonResourceURLs }]
    ),
    incomplete: false,
    ...errors.length > 0 && { evaluationError: aggregate(errors) },
  } as JsonObject;
}

function selfSubject(_spec: JsonObject, request: ResourceRequest): JsonObject {
  return { userInfo: userInfo(request.user) } as JsonObject;
}

function token(spec: JsonObject, request: ResourceRequest): JsonObject {
  if (!spec.token) {
    throw badRequest("token is required for TokenReview in authentication");
  }
  const audiences = Array.isArray(spec.audiences) && spec.audiences.length > 0
    ? spec.audiences.map(String)
    : undefined;
  let error = "invalid bearer token";
  try {
    const found = request.context.authenticator.review(
      String(spec.token),
      audiences,
    );
    if (found) {
      const { user, audiences } = found;
      return {
        authenticated: true,
        user: userInfo(user),
        audiences,
      } as JsonObject;
    }
  } catch (cause) {
    error = `[${error}, ${(cause as Error).message}]`;
  }
  return { user: {}, error };
}
