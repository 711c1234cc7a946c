import {
  type Clock,
  type HttpRequest,
  jsonLogger,
  systemClock,
} from "@coracle/operator/client";
import { InProcessTransport } from "../../../dev/apiserver/http/in_process_transport.ts";
import { createAuthority } from "../../../core/admission/certificates.ts";
import {
  Instance,
  type InstanceOptions,
} from "../../../dev/apiserver/instance.ts";
import { seededRandom } from "../../../dev/apiserver/random.ts";
import type { BuiltinResources } from "../../../dev/apiserver/registry.ts";
import { ADMINISTRATOR } from "../../../dev/apiserver/request/user.ts";
import { noCustomKinds, plainKinds } from "./plain_kinds.ts";

/** What a request of a test answers. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  // deno-lint-ignore no-explicit-any -- tests look at whatever is there
  readonly body: any;
}

const AUTHORITY = {
  ...createAuthority({ commonName: "coracle" }),
  certificate: "none",
};

/** A server of plain kinds that is reached by function calls. */
export class TestServer {
  readonly instance: Instance;
  readonly transport: InProcessTransport;

  constructor(
    options: {
      readonly clock?: Clock;
      /** The built-in kinds; plain ones without. */
      readonly builtin?: BuiltinResources;
      readonly serviceAccounts?: InstanceOptions["serviceAccounts"];
    } = {},
  ) {
    this.instance = new Instance({
      builtin: options.builtin ?? plainKinds,
      crd: noCustomKinds,
      clock: options.clock ?? systemClock,
      random: seededRandom(1),
      logger: jsonLogger(),
      history: { changes: 100, bytes: 1024 * 1024 },
      establishingDelay: 0,

      audit: undefined,
      authenticate: (token) => token === "secret" ? ADMINISTRATOR : undefined,
      authority: () => AUTHORITY,
      serviceAccounts: options.serviceAccounts,
      content: undefined,
    });
    this.transport = new InProcessTransport((request) =>
      this.instance.handler.handle(request)
    );
  }

  /** Sends a request as the administrator and reads the whole answer. */
  async send(
    method: HttpRequest["method"],
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await this.transport.send({
      method,
      path,
      headers: {
        authorization: "Bearer secret",
        "user-agent": "tester/1",
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined || typeof body === "string"
        ? body
        : JSON.stringify(body),
    });
    let text = "";
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      text += decoder.decode(chunk, { stream: true });
    }
    return {
      status: response.status,
      headers: response.headers,
      body: text !== "" && /json/.test(response.headers["content-type"] ?? "")
        ? JSON.parse(text)
        : text,
    };
  }

  stop(): void {
    this.instance.stop();
  }
}
