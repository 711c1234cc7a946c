import { Buffer } from "node:buffer";
import type { KubernetesObject } from "../api/object.ts";
import { parseReview, WebhookRefusal } from "../client/webhook_host.ts";
import type { JsonPatchOperation } from "../patch/json_patch.ts";
import { isJsonObject } from "../patch/json_value.ts";
import type { AdmissionDecision } from "./admission_result.ts";

/** Operation that the API server asks about. */
export type AdmissionOperation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

export const OPERATIONS: readonly AdmissionOperation[] = [
  "CREATE",
  "UPDATE",
  "DELETE",
  "CONNECT",
];

/** User who has sent a request to the API server. */
export interface AdmissionUser {
  /** Name, such as `system:serviceaccount:shop:web`. */
  readonly username: string;
  /** UID; empty if the user has none. */
  readonly uid: string;
  /** Groups of the user. */
  readonly groups: readonly string[];
  /** Further attributes that the authenticator has added. */
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Request of an admission review, checked. */
export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: AdmissionOperation;
  readonly kind: string;
  readonly group: string;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly subresource: string | undefined;
  readonly user: AdmissionUser;
  readonly dryRun: boolean;
  readonly object: KubernetesObject | undefined;
  readonly old: KubernetesObject | undefined;
}

/** API version of the reviews that are understood. */
const REVIEW_VERSION = "admission.k8s.io/v1";

/** Maximum length of a UID, in characters. */
const MAX_UID = 256;

function refuse(why: string): never {
  throw new WebhookRefusal(400, `Cannot read the admission review: ${why}`);
}

/**
 * Reads the request of an `AdmissionReview`.
 *
 * @throws {WebhookRefusal} If the body is not a review of `admission.k8s.io/v1`
 * with a request; the text does not quote it.
 */
export function readAdmissionReview(body: Uint8Array): AdmissionRequest {
  const { apiVersion, kind, request } = parseReview(body);
  if (kind !== "AdmissionReview" || apiVersion !== REVIEW_VERSION) {
    refuse(`it must be an AdmissionReview of ${REVIEW_VERSION}`);
  }
  if (!isJsonObject(request)) return refuse('"request" must be an object');
  const { uid, operation, userInfo, dryRun } = request;
  const asked = isJsonObject(request["kind"]) ? request["kind"] : {};
  if (typeof uid !== "string" || uid === "" || uid.length > MAX_UID) {
    return refuse(`"request.uid" must be a text of 1 to ${MAX_UID} characters`);
  }
  if (!OPERATIONS.includes(operation as AdmissionOperation)) {
    refuse(`"request.operation" must be one of ${OPERATIONS.join(", ")}`);
  }
  const object = objectIn(request["object"], "object");
  const old = objectIn(request["oldObject"], "oldObject");
  if (operation === "DELETE" ? old === undefined : object === undefined) {
    refuse(`"request" must have the object of the ${operation}`);
  }
  return {
    uid,
    operation: operation as AdmissionOperation,
    kind: textIn(asked["kind"]) ?? "",
    group: textIn(asked["group"]) ?? "",
    name: textIn(request["name"]),
    namespace: textIn(request["namespace"]),
    subresource: textIn(request["subResource"]),
    user: userIn(userInfo),
    dryRun: dryRun === true,
    object,
    old,
  };
}

/** Text of a field; undefined if it is absent or empty. */
function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function objectIn(value: unknown, field: string): KubernetesObject | undefined {
  if (value === null || value === undefined) return undefined;
  if (!isJsonObject(value)) {
    return refuse(`"request.${field}" must be an object`);
  }
  // The options of a CONNECT have no metadata.
  const { metadata = value["metadata"] = {} } = value;
  if (!isJsonObject(metadata)) {
    return refuse(`"request.${field}.metadata" must be an object`);
  }
  return value as object as KubernetesObject;
}

function userIn(value: unknown): AdmissionUser {
  if (!isJsonObject(value)) {
    return refuse('"request.userInfo" must be an object');
  }
  const { groups, extra } = value;
  const texts = (list: unknown) =>
    Array.isArray(list) ? list.filter((one) => typeof one === "string") : [];
  return {
    username: textIn(value["username"]) ?? "",
    uid: textIn(value["uid"]) ?? "",
    groups: texts(groups),
    extra: Object.fromEntries(
      Object.entries(isJsonObject(extra) ? extra : {}).map((
        [name, list],
      ) => [name, texts(list)]),
    ),
  };
}

/** Answer to a request, before it is encoded. */
export interface AdmissionAnswer {
  /** Refusal of the request; undefined if it is allowed. */
  readonly status?: AdmissionDecision["denied"];
  readonly warnings?: readonly string[] | undefined;
  readonly patch?: readonly JsonPatchOperation[] | undefined;
}

/** Review that answers a request. */
export function admissionReview(
  request: Pick<AdmissionRequest, "uid" | "name" | "group" | "kind">,
  { status, warnings = [], patch = [] }: AdmissionAnswer,
): object {
  const { uid, name, group, kind } = request;
  return {
    apiVersion: REVIEW_VERSION,
    kind: "AdmissionReview",
    response: {
      uid,
      allowed: status === undefined,
      ...(status !== undefined && {
        status: {
          status: "Failure",
          code: status.code,
          reason: status.reason,
          message: status.message,
          ...(status.causes.length > 0 && {
            details: { name, group, kind, causes: status.causes },
          }),
        },
      }),
      ...(warnings.length > 0 && { warnings }),
      ...(patch.length > 0 && {
        patchType: "JSONPatch",
        patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
      }),
    },
  };
}
