import { ApiError } from "../../core/api/api_error.ts";
import type { Client } from "../../core/client/client.ts";
import type { HttpRequest } from "../../core/client/transport/transport.ts";
import { until } from "./until.ts";

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
