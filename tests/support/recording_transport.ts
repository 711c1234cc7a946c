import { accessOf } from "../../testing/restricted_transport.ts";
import { readTarget } from "../../apiserver/request/request_info.ts";
import type {
  HttpRequest,
  HttpResponse,
  Transport,
} from "../../core/client/transport/transport.ts";

/** A request as its sender saw it. */
export interface RecordedRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  /** Such as `list`; empty where no resource is named. */
  readonly verb: string;
  /** The plural; empty where no resource is named. */
  readonly resource: string;
  /** Such as `status`; empty for the objects themselves. */
  readonly subresource: string;
  /** The name; empty where a request names no object, as a list. */
  readonly name: string;
  /** The status of the answer. */
  readonly status: number;
}

/** Keeps in mind what was asked, and what was made. */
export class RecordingTransport implements Transport {
  readonly requests: RecordedRequest[] = [];
  /** The paths of all objects that were made, in that order. */
  readonly made: string[] = [];
  readonly #inner: Transport;

  /** @param inner Sends what this one is given. */
  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async send(request: HttpRequest): Promise<HttpResponse> {
    const { method, path } = request;
    const response = await this.#inner.send(request);
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

  /** Reads the name of what was made from the answer that passes. */
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
