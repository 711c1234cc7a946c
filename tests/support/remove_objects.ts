import { after } from "node:test";
import {
  ApiError,
  Client,
  type HttpRequest,
  loadConfig,
} from "@coracle/operator/client";
import { ON_REAL_CLUSTER } from "./scenario_cluster.ts";
import { until } from "./until.ts";

const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";

/**
 * Removes definitions from the real cluster of the run after the tests of a file,
 * so that no other file meets them.
 */
export function removesDefinitions(
  ...kinds: readonly { readonly group: string; readonly plural: string }[]
): void {
  if (!ON_REAL_CLUSTER) return;
  after(async () => {
    const client = new Client(await loadConfig());
    const paths = kinds.map(({ group, plural }) =>
      `${DEFINITIONS}${plural}.${group}`
    );
    await removeObjects(client, paths).finally(() => client.close());
  });
}

/**
 * Removes objects that a test created with their finalizers, the last one first,
 * and waits until none exists.
 *
 * @param paths The paths of the objects.
 */
export async function removeObjects(
  client: Client,
  paths: readonly string[],
): Promise<void> {
  const left = [...new Set(paths)].toReversed();
  for (const path of left) {
    await ask(client, { method: "DELETE", path });
    // The finalizer of a definition removes its objects.
    if (path.startsWith(DEFINITIONS)) continue;
    await ask(client, {
      method: "PATCH",
      path,
      headers: { "content-type": "application/merge-patch+json" },
      body: '{"metadata":{"finalizers":null}}',
    });
  }
  for (const path of left) {
    await until(
      `${path} is gone`,
      async () => await ask(client, { method: "GET", path }) === 404,
      { within: 30_000 },
    );
  }
}

/** Status of a response; an object may not exist at any time. */
async function ask(
  client: Client,
  request: Omit<HttpRequest, "headers"> & Partial<HttpRequest>,
): Promise<number> {
  try {
    const answer = await client.request({ headers: {}, ...request });
    await answer.cancel();
    return answer.status;
  } catch (error) {
    if (ApiError.is(error)) return error.status;
    throw error;
  }
}
