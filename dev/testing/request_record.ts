import { appendFileSync, readFileSync, statSync } from "node:fs";
import { readTarget, verbOf } from "../apiserver/request/request_info.ts";
import type { HttpRequest } from "@coracle/operator/client";

/** Request that an operator has sent, in terms of RBAC rules. */
export interface RecordedRequest {
  /** RBAC verb. */
  readonly verb: string;
  /** API group; empty for the core group. */
  readonly group: string;
  /** Plural resource name, followed by a slash and the subresource if any. */
  readonly resource: string;
  /**
   * Namespace; undefined for all of them and for cluster-scoped objects, and
   * {@linkcode ANY_WATCHED_NAMESPACE} for the namespace of a test.
   */
  readonly namespace?: string | undefined;
}

/**
 * Access that a request needs; undefined for requests without a resource, such
 * as discovery and health checks.
 */
export function accessOf(
  method: HttpRequest["method"],
  path: string,
): RecordedRequest | undefined {
  const target = readTarget(path);
  if (target?.resource === undefined) return undefined;
  const { group, plural, subresource, namespace } = target.resource;
  return {
    verb: verbOf(method, target),
    group,
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    namespace,
  };
}

/**
 * Verbs that the rules for a request need. A stream of a pod is opened by GET,
 * and servers from 1.35 on require `create` in addition, as they do for an apply
 * or an update that creates its object. A refused apply may have been to create.
 *
 * @param status HTTP status of the response.
 */
export function neededVerbs(
  { verb, group, resource }: RecordedRequest,
  status: number,
): readonly string[] {
  const isStream = verb === "get" && group === "" &&
    /^pods\/(?:attach|exec|portforward)$/.test(resource);
  const mayCreate = /^(?:patch|update)$/.test(verb) && status === 201 ||
    verb === "patch" && status === 403 && !resource.includes("/");
  return isStream || mayCreate ? [verb, "create"] : [verb];
}

/** Placeholder for the namespace of a test: any watched namespace. */
export const ANY_WATCHED_NAMESPACE = "*";

/** API group whose requests need no rights. */
const PUBLIC_GROUP = "authorization.k8s.io";

/**
 * Record of the requests of an operator in a file, for
 * `coracle manifests --recorded FILE`: one JSON object per line, each kind of
 * request once per process. Several processes may append to one file.
 */
export class RequestRecord {
  readonly #file: string;
  readonly #lines: Set<string> = new Set();

  /**
   * Creates a record.
   *
   * @param file The file, which is created if it does not exist.
   */
  constructor(file: string) {
    this.#file = file;
    try {
      const found = statSync(file, { throwIfNoEntry: false });
      // To open a FIFO takes until another process reads it.
      if (found?.isFile() === false) {
        throw new Error("Cannot open anything but a file");
      }
      appendFileSync(file, "");
    } catch (error) {
      throw new Error(
        `Cannot record requests in ${file}: it must be a writable file: ${
          (error as Error).message
        }`,
        { cause: error },
      );
    }
  }

  /**
   * Adds a request.
   *
   * @param status HTTP status of the response.
   */
  add(request: RecordedRequest, status: number): void {
    const { group, resource, namespace } = request;
    if (group === PUBLIC_GROUP) return;
    for (const verb of neededVerbs(request, status)) {
      const line = JSON.stringify({ verb, group, resource, namespace });
      if (this.#lines.has(line)) continue;
      this.#lines.add(line);
      appendFileSync(this.#file, `${line}\n`);
    }
  }
}

/**
 * Reads the record of a file.
 *
 * @throws {Error} If the file cannot be read or is not a record.
 */
export function readRequests(file: string): readonly RecordedRequest[] {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new Error(
      `Cannot read ${file}: it must be a file with recorded requests: ${
        (error as Error).message
      }`,
      { cause: error },
    );
  }
  return text.split("\n").flatMap((line, index) => {
    if (line === "") return [];
    const { verb, group, resource, namespace } = requestOf(line) ?? {};
    const texts = [verb, group, resource, namespace ?? ""];
    if (texts.every((text) => typeof text === "string")) {
      return [{ verb, group, resource, namespace } as RecordedRequest];
    }
    throw new Error(
      `Cannot read ${file}: line ${
        index + 1
      } is not a recorded request: write the file by coracle dev --record, or by the option record of a test cluster`,
    );
  });
}

function requestOf(line: string): Partial<RecordedRequest> | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
