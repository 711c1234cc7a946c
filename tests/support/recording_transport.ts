import type {
  HttpRequest,
  HttpResponse,
  Transport,
} from "@coracle/operator/client";
import { accessOf } from "../../dev/testing/request_record.ts";
import { readTarget } from "../../dev/apiserver/request/request_info.ts";
import { lateChunks } from "./late_chunks.ts";

/** Recorded request with the status of its response. */
export interface RecordedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Verb, such as `list`; empty for paths without a resource. */
  readonly verb: string;
  /** Plural of the resource; empty for other paths. */
  readonly resource: string;
  /** Subresource, such as `status`; empty for the objects themselves. */
  readonly subresource: string;
  /** Name of the object; empty for collections. */
  readonly name: string;
  /** HTTP status code of the response. */
  readonly status: number;
}

/** Transport that records its requests and the created objects. */
export class RecordingTransport implements Transport {
  readonly requests: RecordedRequest[] = [];
  /** Paths of all created objects, in order. */
  readonly made: string[] = [];
  /** Targets of requests whose responses have not ended, such as watches. */
  readonly open: Map<HttpRequest, string> = new Map();
  readonly #inner: Transport;

  /** @param inner The transport that sends the requests. */
  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { method, path } = request;
    const response = await this.#send(request);
    const { resource } = readTarget(path) ?? {};
    this.requests.push({
      method,
      target: path,
      verb: accessOf(method, path)?.verb ?? "",
      resource: resource?.plural ?? "",
      subresource: resource?.subresource ?? "",
      name: resource?.name ?? "",
      status: response.status,
    });
    const dryRun = path.includes("dryRun=");
    return response.status === 201 && resource !== undefined && !dryRun &&
        resource.subresource === undefined
      ? this.#madeBy(path.split("?")[0] ?? "", response, resource.name)
      : response;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #send(request: HttpRequest): Promise<HttpResponse> {
    const { open } = this;
    open.set(request, `${request.method} ${request.path}`);
    const end = () => open.delete(request);
    try {
      const response = await this.#inner.send(request);
      if (!/[?&]watch=/.test(request.path)) {
        end();
        return response;
      }
      return {
        status: response.status,
        headers: response.headers,
        body: (async function* () {
          try {
            yield* lateChunks(request, response.body);
          } finally {
            end();
          }
        })(),
        async cancel() {
          await response.cancel();
          end();
        },
      };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Reads the name of a created object from its response. */
  #madeBy(
    path: string,
    response: HttpResponse,
    name: string | undefined,
  ): HttpResponse {
    if (name !== undefined) {
      this.made.push(path);
      return response;
    }
    const { made } = this;
    return {
      ...response,
      body: (async function* () {
        let text = "";
        const decoder = new TextDecoder();
        for await (const chunk of response.body) {
          text += decoder.decode(chunk, { stream: true });
          yield chunk;
        }
        const name = JSON.parse(text).metadata?.name;
        if (name !== undefined) made.push(`${path}/${name}`);
      })(),
    };
  }
}
