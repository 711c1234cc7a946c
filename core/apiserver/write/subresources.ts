import type { UntypedObject } from "../../api/object.ts";
import { isJsonObject, type JsonObject } from "../../patch/json_value.ts";
import { timestamp } from "../api_context.ts";
import { jsonResponse, type ServerResponse } from "../http/exchange.ts";
import { findStored } from "../read/get.ts";
import { asObject } from "../request/body.ts";
import { readTree } from "../request/object_body.ts";
import {
  readDeleteOptions,
  readWriteOptions,
} from "../request/query_options.ts";
import type { Subresource } from "../registry.ts";
import {
  methodNotAllowed,
  type ResourceRequest,
  subjectOf,
} from "../request/resource_request.ts";
import { badRequest, conflict } from "../status.ts";
import { deleteObject } from "./delete.ts";
import { checkPath, updateObject } from "./update.ts";

/** Answers a POST to a subresource. */
export async function postSubresource(
  request: ResourceRequest,
  { name, kind }: Subresource,
): Promise<ServerResponse> {
  const { plural } = request.definition;
  switch (`${plural}/${name}`) {
    case "pods/binding":
      return await bindPod(request, kind);
    case "pods/eviction":
      return await evictPod(request, kind);
    case "serviceaccounts/token":
      return await requestToken(request, kind);
    default:
      throw methodNotAllowed(request);
  }
}

async function readOptionsObject(
  request: ResourceRequest,
  kind: string,
): Promise<UntypedObject> {
  const { value } = await readTree(request, kind);
  const object = asObject(value);
  checkPath(request, object.metadata);
  return object;
}

function success(): ServerResponse {
  return jsonResponse(201, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    code: 201,
  });
}

function writeOptions(request: ResourceRequest) {
  return readWriteOptions(request.query, "CreateOptions", {
    userAgent: request.http.headers["user-agent"],
    apply: false,
  });
}

/** Puts a pod on a node, as a scheduler does. */
async function bindPod(
  request: ResourceRequest,
  kind: string,
): Promise<ServerResponse> {
  const options = writeOptions(request);
  const binding = await readOptionsObject(request, kind);
  const target = isJsonObject(binding.target) ? binding.target : {};
  const { name: node } = target;
  if (typeof node !== "string" || node === "") {
    throw badRequest("target.name: Required value");
  }
  updateObject({ ...request, subresource: undefined }, {
    options,
    conditional: false,
    mayCreate: false,
    next: (pod) => {
      const spec = (pod.spec ??= {}) as JsonObject;
      if (spec.nodeName) {
        throw conflict(
          { ...subjectOf(request), kind: "pods/binding" },
          `pod ${request.name} is already assigned to node ${
            JSON.stringify(spec.nodeName)
          }`,
        );
      }
      spec.nodeName = node;
      return pod;
    },
  });
  return success();
}

/** Deletes a pod; no disruption budget is kept, since no pod runs. */
async function evictPod(
  request: ResourceRequest,
  kind: string,
): Promise<ServerResponse> {
  const { dryRun } = writeOptions(request);
  const eviction = await readOptionsObject(request, kind);
  const options = readDeleteOptions(
    request.query,
    isJsonObject(eviction.deleteOptions) ? eviction.deleteOptions : {},
  );
  deleteObject(
    { ...request, subresource: undefined },
    findStored(request),
    { ...options, dryRun: options.dryRun || dryRun },
  );
  return success();
}

/** Gives a token in a service account's name; nothing here takes it. */
async function requestToken(
  request: ResourceRequest,
  kind: string,
): Promise<ServerResponse> {
  const tokenRequest = await readOptionsObject(request, kind);
  const account = findStored(request);
  const spec = isJsonObject(tokenRequest.spec) ? tokenRequest.spec : {};
  const seconds = typeof spec.expirationSeconds === "number"
    ? spec.expirationSeconds
    : 3600;
  if (seconds < 600) {
    throw badRequest(
      "spec.expirationSeconds: Invalid value: may not specify a duration less than 10 minutes",
    );
  }
  const { clock, random } = request.context;
  const now = clock.wallTime();
  return jsonResponse(201, {
    ...tokenRequest,
    kind,
    apiVersion: "authentication.k8s.io/v1",
    metadata: {
      name: account.name,
      namespace: account.namespace,
      creationTimestamp: timestamp(now),
    },
    spec: {
      audiences: ["https://kubernetes.default.svc.cluster.local"],
      ...spec,
      expirationSeconds: seconds,
    },
    status: {
      token: `${random.uid()}.${random.uid()}`,
      expirationTimestamp: timestamp(now + seconds * 1000),
    },
  });
}
