import { admitPosted } from "../admission/admission.ts";
import { readWriteOptions } from "../request/query_options.ts";
import { timestamp, type UntypedObject } from "@coracle/operator/client";
import { isJsonObject, type JsonObject } from "@coracle/operator/internal";
import type { TokenSubject } from "../access/service_account_tokens.ts";
import { jsonResponse, type ServerResponse } from "../http/exchange.ts";
import { findStored } from "../read/get.ts";
import { asObject } from "../request/body.ts";
import { readTree } from "../request/object_body.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import {
  badRequest,
  conflict,
  fieldError,
  invalid,
  notFound,
} from "../status.ts";
import { storageKey, type StoredObject } from "../storage/stored_object.ts";
import { isNumber } from "../exact_json.ts";

const GROUP = "authentication.k8s.io";
/** Lifetime that Pods request for tokens, which are then valid for a year. */
const EXTENDED_SECONDS = 3607;
const YEAR_SECONDS = 365 * 24 * 3600;

/** Plurals of the kinds to whose objects tokens are bound. */
const BOUND_KINDS: ReadonlyMap<string, string> = new Map([
  ["Pod", "pods"],
  ["Secret", "secrets"],
  ["Node", "nodes"],
]);

/** Handles a TokenRequest: issues a token for a service account. */
export async function requestToken(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const { value } = await readTree(request, "TokenRequest");
  const options = readWriteOptions(request, "CreateOptions");
  const wanted = await admitPosted(request, asObject(value), options);
  const account = findStored(request);
  checkMetadata(wanted, account);
  const spec = isJsonObject(wanted.spec) ? wanted.spec : {};
  const seconds = lifetime(spec);
  const subject = tokenSubject(request, account, spec.boundObjectRef);
  const { clock, accountTokens } = request.context;
  const now = clock.wallTime();
  const audiences = Array.isArray(spec.audiences) && spec.audiences.length > 0
    ? spec.audiences.map(String)
    : accountTokens.audiences;
  const isExtended = subject.pod !== undefined &&
    seconds === EXTENDED_SECONDS &&
    audiences.every((one) => accountTokens.audiences.includes(one));
  const token = accountTokens.issue(
    isExtended
      ? { ...subject, warnafter: Math.floor(now / 1000) + seconds }
      : subject,
    { audiences, seconds: isExtended ? YEAR_SECONDS : seconds },
  );
  const answer: UntypedObject = {
    ...wanted,
    kind: "TokenRequest",
    apiVersion: `${GROUP}/v1`,
    metadata: {
      name: account.name,
      namespace: account.namespace,
      uid: account.uid,
      creationTimestamp: timestamp(now),
    },
    spec: {
      boundObjectRef: null,
      ...spec,
      audiences,
      expirationSeconds: seconds,
    },
    status: { token, expirationTimestamp: timestamp(now + seconds * 1000) },
  };
  return jsonResponse(201, answer);
}

/** Checks that a request is for the service account of the path. */
function checkMetadata(
  { metadata }: UntypedObject,
  { name, namespace, uid }: StoredObject,
): void {
  for (const [field, own] of [["name", name], ["namespace", namespace]]) {
    const given = metadata?.[field as "name" | "namespace"];
    if (!given || given === own) continue;
    throw invalid({ group: GROUP, kind: "TokenRequest", name }, [
      fieldError.invalid(
        `metadata.${field}`,
        given,
        `must match the service account ${field} if specified`,
      ),
    ]);
  }
  if (!metadata?.uid || metadata.uid === uid) return;
  throw conflict(
    { group: GROUP, kind: "TokenRequest", name },
    `the UID in the token request (${metadata.uid}) does not match the UID of the service account (${uid})`,
  );
}

/**
 * Service account and bound object of a token.
 *
 * @throws {StatusError} If the object cannot be bound.
 */
function tokenSubject(
  { context }: ResourceRequest,
  account: StoredObject,
  reference: JsonObject[string],
): TokenSubject {
  const { namespace, name, uid } = account;
  const subject = { namespace, serviceaccount: { name, uid } };
  if (!isJsonObject(reference)) return subject;
  const { apiVersion = "", kind = "", name: bound = "" } = reference;
  const plural = BOUND_KINDS.get(String(kind));
  if (plural === undefined || apiVersion !== "v1") {
    const [version, group = ""] = String(apiVersion).split("/").reverse();
    throw badRequest(
      `cannot bind token to object of type ${group}/${version}, Kind=${kind}`,
    );
  }
  const find = (plural: string, name: string) =>
    context.store.collection({ group: "", plural }).get(
      storageKey({ namespace: plural === "nodes" ? "" : namespace, name }),
    );
  const found = find(plural, String(bound));
  if (found === undefined) {
    throw notFound({ group: "", kind: plural, name: String(bound) });
  }
  let node: { name: string; uid?: string } | undefined;
  if (kind === "Pod") {
    const spec = found.parse().spec as {
      readonly serviceAccountName?: string;
      readonly nodeName?: string;
    };
    if (spec.serviceAccountName !== name) {
      throw badRequest(
        `cannot bind token for serviceaccount "${name}" to pod running with different serviceaccount name.`,
      );
    }
    if (spec.nodeName) {
      const { uid } = find("nodes", spec.nodeName) ?? {};
      node = { name: spec.nodeName, ...uid !== undefined && { uid } };
    }
  }
  if (reference.uid && reference.uid !== found.uid) {
    throw conflict(
      { group: "", kind: String(kind), name: String(bound) },
      `the UID in the bound object reference (${reference.uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  }
  const claim = { name: found.name, uid: found.uid };
  return {
    ...subject,
    ...node && { node },
    [String(kind).toLowerCase()]: claim,
  };
}

function lifetime({ expirationSeconds: seconds }: JsonObject): number {
  if (!isNumber(seconds)) return 3600;
  if (seconds >= 600 && seconds <= 2 ** 32) return Number(seconds);
  const why = seconds < 600
    ? "may not specify a duration less than 10 minutes"
    : "may not specify a duration larger than 2^32 seconds";
  throw invalid({ group: GROUP, kind: "TokenRequest" }, [
    fieldError.invalid("spec.expirationSeconds", seconds, why),
  ]);
}
