import type {
  HttpRequest,
  HttpResponse,
  StreamConnection,
  Transport,
} from "@coracle/operator/client";
import {
  readTarget,
  type RequestInfo,
} from "../../apiserver/request/request_info.ts";

/** Reviews that ask a server about rights, and change nothing. */
const REVIEWS: ReadonlySet<string> = new Set([
  "authentication.k8s.io/selfsubjectreviews",
  "authorization.k8s.io/localsubjectaccessreviews",
  "authorization.k8s.io/selfsubjectaccessreviews",
  "authorization.k8s.io/selfsubjectrulesreviews",
  "authorization.k8s.io/subjectaccessreviews",
]);

/**
 * Subresources that a GET may read. Others reach into pods, nodes and services:
 * `exec`, `attach`, `portforward` and `proxy` run what is behind them.
 */
const READ_SUBRESOURCES: ReadonlySet<string> = new Set(["scale", "status"]);

/** Paths without a resource that a client needs: discovery and the version. */
const DISCOVERY = /^\/(?:version|api|apis|api\/v1|apis\/[^/]+(?:\/[^/]+)?)\/?$/;

/**
 * Transport that only reads: it passes on gets, lists and watches of objects,
 * discovery and reviews of rights, and refuses every other request before anything
 * is sent. It opens no streams.
 */
export class ReadOnlyTransport implements Transport {
  readonly #inner: Transport;

  /**
   * Creates a transport.
   *
   * @param inner Transport to the cluster, which is closed with this one.
   */
  constructor(inner: Transport) {
    this.#inner = inner;
  }

  /**
   * Sends a request that reads.
   *
   * @throws {Error} If the request could change anything.
   */
  async send(request: HttpRequest): Promise<HttpResponse> {
    const { method, path } = request;
    if (isReading(method, readTarget(path), request.headers)) {
      return await this.#inner.send(request);
    }
    throw new Error(
      `Cannot send ${method} ${
        path.replace(/\?.*$/s, "")
      }: this client only reads: it may get, list and watch objects, and review rights`,
    );
  }

  connect(): Promise<StreamConnection> {
    return Promise.reject(
      new Error("Cannot open a stream: this client only reads"),
    );
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

/** Whether a request can change nothing. */
function isReading(
  method: string,
  target: RequestInfo | undefined,
  headers: Readonly<Record<string, string>>,
): boolean {
  if (target === undefined) return false;
  // A proxy or a pod would take over the connection.
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  if (names.some((name) => name === "upgrade" || isOverride(name))) {
    return false;
  }
  const { resource, path } = target;
  if (resource === undefined) return method === "GET" && DISCOVERY.test(path);
  const { group, plural, name, subresource, rest, watch } = resource;
  if (rest.length > 0) return false;
  if (method === "GET") {
    return !watch && !isDotted(path) && name !== "" &&
      (subresource === undefined || READ_SUBRESOURCES.has(subresource));
  }
  return method === "POST" && name === undefined &&
    REVIEWS.has(`${group}/${plural}`);
}

/** Whether a header asks a server for another method than that of the request. */
function isOverride(name: string): boolean {
  return /^x-http-method(?:-override)?$|^x-method-override$/.test(name);
}

/** Whether a path has parts that a server or proxy may resolve to another path. */
function isDotted(path: string): boolean {
  return /(?:^|\/)\.{0,2}(?:\/|$)/.test(path.slice(1)) || path.includes("\\");
}
