import { admitPosted } from "../admission/admission.ts";
import { isJsonObject } from "@coracle/operator/internal";
import type { ServerResponse } from "../http/exchange.ts";
import { respondCreated } from "../read/respond.ts";
import { findStored } from "../read/get.ts";
import type { Subresource } from "../registry.ts";
import { asObject } from "../request/body.ts";
import { readTree } from "../request/object_body.ts";
import {
  readDeleteOptions,
  readWriteOptions,
} from "../request/query_options.ts";
import {
  methodNotAllowed,
  type ResourceRequest,
} from "../request/resource_request.ts";
import { settle } from "../settle.ts";
import { bindPod } from "./bind.ts";
import { deleteObject } from "./delete.ts";
import { takeDisruption } from "./disruption_budgets.ts";
import { requestToken } from "./service_account_token.ts";
import { checkPath } from "./update.ts";

/** Handles a POST to a subresource. */
export async function postSubresource(
  request: ResourceRequest,
  { name, kind }: Subresource,
): Promise<ServerResponse> {
  const { plural } = request.definition;
  switch (`${plural}/${name}`) {
    case "pods/binding":
      return await bindPod(request);
    case "pods/eviction":
      return await evictPod(request, kind);
    case "serviceaccounts/token":
      return await requestToken(request);
    default:
      throw methodNotAllowed(request);
  }
}

/** Evicts a pod, if its disruption budget permits it. */
async function evictPod(
  request: ResourceRequest,
  kind: string,
): Promise<ServerResponse> {
  const write = readWriteOptions(request, "CreateOptions");
  const { value } = await readTree(request, kind);
  const eviction = asObject(value);
  checkPath(request, eviction.metadata);
  await admitPosted(request, eviction, write);
  const options = readDeleteOptions(
    request.query,
    isJsonObject(eviction.deleteOptions) ? eviction.deleteOptions : {},
  );
  const dryRun = options.dryRun || write.dryRun;
  await settle(() => {
    takeDisruption(request.context, findStored(request), dryRun);
    return deleteObject(
      { ...request, subresource: undefined },
      findStored(request),
      { ...options, dryRun },
      true,
    );
  }, request.warnings);
  return await respondCreated(request);
}
