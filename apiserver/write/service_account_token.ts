import { admitPosted } from "../admission/admission.ts";
import { readWriteOptions } from "../request/query_options.ts";
import type { UntypedObject } from "../../core/api/object.ts";
import { isJsonObject, type JsonObject } from "../../core/patch/json_value.ts";
import { timestamp } from "../../core/api/timestamp.ts";
import { jsonResponse, type ServerResponse } from "../http/exchange.ts";
import { findStored } from "../read/get.ts";
import { asObject } from "../request/body.ts";
import { readTree } from "../request/object_body.ts";
import type { ResourceRequest } from "../request/resource_request.ts";
import { fieldError, invalid } from "../status.ts";

const GROUP = "authentication.k8s.io";

/**
 * Handles a TokenRequest: issues a token for a service account, which this
 * server does not accept.
 */
export async function requestToken(
  request: ResourceRequest,
): Promise<ServerResponse> {
  const { value } = await readTree(request, "TokenRequest");
  const options = readWriteOptions(request.query, "CreateOptions", {
    userAgent: request.http.headers["user-agent"],
    apply: false,
  });
  const wanted = await admitPosted(request, asObject(value), options);
  const account = findStored(request);
  const spec = isJsonObject(wanted.spec) ? wanted.spec : {};
  const seconds = lifetime(spec);
  const { clock, random } = request.context;
  const now = clock.wallTime();
  const answer: UntypedObject = {
    ...wanted,
    kind: "TokenRequest",
    apiVersion: `${GROUP}/v1`,
    metadata: {
      name: account.name,
      namespace: account.namespace,
      creationTimestamp: timestamp(now),
    },
    spec: {
      boundObjectRef: null,
      ...spec,
      audiences: Array.isArray(spec.audiences) && spec.audiences.length > 0
        ? spec.audiences
        : ["https://kubernetes.default.svc"],
      expirationSeconds: seconds,
    },
    status: {
      token: `${random.uid()}.${random.uid()}`,
      expirationTimestamp: timestamp(now + seconds * 1000),
    },
  };
  return jsonResponse(201, answer);
}

function lifetime({ expirationSeconds: seconds }: JsonObject): number {
  if (typeof seconds !== "number") return 3600;
  if (seconds >= 600) return seconds;
  throw invalid({ group: GROUP, kind: "TokenRequest" }, [
    fieldError.invalid(
      "spec.expirationSeconds",
      seconds,
      "may not specify a duration less than 10 minutes",
    ),
  ]);
}
