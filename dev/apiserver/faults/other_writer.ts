import { Buffer } from "node:buffer";
import type { ServerRequest } from "../http/exchange.ts";
import { readTarget } from "../request/request_info.ts";
import type { Answer } from "./stale_answer.ts";

/** Annotation that the other writer adds and removes. */
const ANNOTATION = "coracle.dev/conflict-fault";
/** Field manager of the other writer. */
const FIELD_MANAGER = "conflict-fault";

const encoder = new TextEncoder();

/**
 * Changes the object of a write as another client does: adds an annotation and
 * removes it. The object has a new resourceVersion and is otherwise as before.
 *
 * @param write Write to the object or to a subresource of it.
 * @param answer Function that answers a request of the other client.
 * @returns Whether the object has changed; false if it does not exist, or the
 * server is down.
 * @throws {Error} If the server refuses the change.
 */
export async function changeObjectOf(
  write: ServerRequest,
  answer: Answer,
): Promise<boolean> {
  const { subresource } = readTarget(write.target)?.resource ?? {};
  const path = write.target.split("?", 1)[0] ?? "";
  const object = subresource ? path.slice(0, path.lastIndexOf("/")) : path;
  for (const value of ["true", null]) {
    const response = await answer({
      method: "PATCH",
      target: `${object}?fieldManager=${FIELD_MANAGER}`,
      headers: { "content-type": "application/merge-patch+json" },
      body: encoder.encode(
        JSON.stringify({ metadata: { annotations: { [ANNOTATION]: value } } }),
      ),
    });
    if (response === undefined || response.status === 404) return false;
    if (response.status >= 300) {
      throw new Error(
        `Cannot cause a conflict: the change of another client was refused: received ${response.status}`,
      );
    }
  }
  return true;
}

/**
 * Whether the server itself compares the object with the one that a write
 * expects: in an update, which is unconditional without a resourceVersion, and in
 * a JSON Patch that tests the resourceVersion.
 */
export function comparesVersions(
  { method, headers, body }: ServerRequest,
): boolean {
  if (method !== "PATCH") return true;
  if (!headers["content-type"]?.startsWith("application/json-patch+json")) {
    return false;
  }
  try {
    const operations: unknown = JSON.parse(Buffer.from(body).toString());
    return Array.isArray(operations) &&
      operations.some((operation) =>
        operation?.op === "test" &&
        operation.path === "/metadata/resourceVersion"
      );
  } catch {
    return true; // The server says what is wrong with it.
  }
}
