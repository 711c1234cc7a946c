import { Buffer } from "node:buffer";
import { Agent, request } from "node:https";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import { Greeting, greetingName, greetingText } from "./greeting.ts";

/** Number of concurrent changes in a storm. */
const STORM_CHANGES = 20;
/** Time limit of a status. */
const PATIENCE_MS = 120_000;
const PLURAL_PATH = `/apis/${Greeting.group}/${Greeting.version}`;
const FOLDER = `${PLURAL_PATH}/namespaces/default/${Greeting.plural}`;

/** Durations in a storm. */
export interface Storm {
  /** Milliseconds from each change to its status. */
  readonly each: readonly number[];
  /** Milliseconds from the first change to the last status. */
  readonly all: number;
}

/** Part of a watch event that is used. */
interface GreetingEvent {
  readonly type: string;
  readonly object: Pick<Greeting, "metadata" | "spec" | "status">;
}

interface Waiting {
  readonly text: string;
  readonly start: number;
  readonly resolve: (milliseconds: number) => void;
}

/** Installs the kind Greeting and creates objects of it. */
export async function createGreetings(
  kubeconfig: string,
  objects: number,
): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  await installCrd(client, Greeting);
  let next = 0;
  const work = async () => {
    while (next < objects) {
      const name = greetingName(next++);
      await client.create(Greeting, {
        metadata: { name, namespace: "default" },
        spec: { name },
      });
    }
  };
  await Promise.all(Array.from({ length: STORM_CHANGES }, work));
  await client.close();
}

/**
 * Changes Greetings and waits for their statuses. It uses `node:https`, so that
 * it needs little processor time beside the operator and the server.
 */
export class GreetingLoad {
  readonly #server: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #ca: string;
  readonly #agent: Agent;
  readonly #objects: number;
  readonly #waiting: Map<string, Waiting> = new Map();
  #watch: ClientRequest | undefined;
  #closed = false;
  #round = 0;

  private constructor(
    { server, token, ca, objects }: {
      readonly server: string;
      readonly token: string;
      readonly ca: string;
      readonly objects: number;
    },
  ) {
    this.#server = new URL(server);
    this.#ca = ca;
    this.#headers = { authorization: `Bearer ${token}` };
    this.#agent = new Agent({ ca, keepAlive: true, maxSockets: STORM_CHANGES });
    this.#objects = objects;
  }

  /** Opens a load for a number of existing Greetings. */
  static async open(
    kubeconfig: string,
    objects: number,
  ): Promise<GreetingLoad> {
    const config = await loadConfig({ kubeconfig });
    const { server, certificateAuthority: ca, credentials } = config;
    const { token } = credentials !== undefined && "current" in credentials
      ? await credentials.current()
      : credentials ?? {};
    if (typeof ca !== "string" || token === undefined) {
      throw new TypeError(
        "Cannot run the load: the kubeconfig must have the certificate of an authority and a token",
      );
    }
    const load = new GreetingLoad({ server, token, ca, objects });
    const list = await load.#send("GET", `${FOLDER}?limit=1`);
    const { metadata } = JSON.parse(list) as Greeting;
    load.#follow(metadata.resourceVersion ?? "");
    return load;
  }

  /**
   * Changes the specs of all objects, many at once.
   *
   * @returns Resolves when all are changed, with a promise for the statuses.
   */
  async changeAll(): Promise<{ readonly storm: Promise<Storm> }> {
    const round = this.#nextRound();
    const start = performance.now();
    const greeted: Promise<number>[] = [];
    const work = async () => {
      while (greeted.length < this.#objects) {
        await this.#change(greeted.length, round, (one) => greeted.push(one));
      }
    };
    await Promise.all(Array.from({ length: STORM_CHANGES }, work));
    const storm = Promise.all(greeted).then((each) => ({
      each,
      all: performance.now() - start,
    }));
    return { storm };
  }

  /** Changes the specs of all objects and waits for their statuses. */
  async storm(): Promise<Storm> {
    return await (await this.changeAll()).storm;
  }

  /**
   * Changes objects one after the other.
   *
   * @returns Milliseconds from each change to its status.
   */
  async oneByOne(count: number): Promise<readonly number[]> {
    const round = this.#nextRound();
    const times: number[] = [];
    for (let index = 0; index < count; index++) {
      let greeted: Promise<number> | undefined;
      await this.#change(index, round, (one) => greeted = one);
      times.push(await greeted ?? NaN);
    }
    return times;
  }

  /** Resolves when the next status is as expected. */
  firstStatus(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#first = resolve;
    return promise;
  }
  #first: () => void = () => {};

  /** Closes the connections. */
  close(): void {
    this.#closed = true;
    this.#watch?.destroy();
    this.#agent.destroy();
  }

  #nextRound(): string {
    return `${Date.now()}-${this.#round++}`;
  }

  #change(
    index: number,
    round: string,
    take: (greeted: Promise<number>) => void,
  ): Promise<unknown> {
    const key = greetingName(index);
    const name = `${round}-${index}`;
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const late = setTimeout(
      () => reject(new Error(`Cannot measure: ${key} has no status`)),
      PATIENCE_MS,
    );
    const start = performance.now();
    this.#waiting.set(key, {
      text: greetingText({ name }),
      start,
      resolve(milliseconds) {
        clearTimeout(late);
        resolve(milliseconds);
      },
    });
    promise.catch(() => {});
    take(promise);
    const body = JSON.stringify({ spec: { name } });
    return this.#send("PATCH", `${FOLDER}/${key}`, body);
  }

  #send(method: string, path: string, body = ""): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const sent = request(new URL(path, this.#server), {
      method,
      agent: this.#agent,
      headers: {
        ...this.#headers,
        "content-type": "application/merge-patch+json",
        "content-length": String(Buffer.byteLength(body)),
      },
    }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk) => text += chunk);
      response.on("error", reject).on("end", () => {
        if (response.statusCode === 200) resolve(text);
        else reject(new Error(`Cannot change ${path}: received ${text}`));
      });
    });
    sent.on("error", reject).end(body);
    return promise;
  }

  /** Watches from a resourceVersion; a server may end it, then it resumes. */
  #follow(from: string): void {
    let version = from;
    const path = `${FOLDER}?watch=true&resourceVersion=${from}`;
    const take = (line: string) => {
      const { type, object } = JSON.parse(line) as GreetingEvent;
      if (type === "ERROR") throw new Error(`Cannot watch: received ${line}`);
      const { name, resourceVersion } = object.metadata;
      version = resourceVersion ?? version;
      const waiting = this.#waiting.get(name);
      if (waiting === undefined || object.status?.text !== waiting.text) return;
      this.#waiting.delete(name);
      waiting.resolve(performance.now() - waiting.start);
      this.#first();
    };
    const read = (response: IncomingMessage) => {
      let rest = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) take(line);
      });
      response.on("close", () => {
        if (!this.#closed) this.#follow(version);
      });
      response.on("error", () => {});
    };
    this.#watch = request(new URL(path, this.#server), {
      agent: false,
      ca: this.#ca,
      headers: this.#headers,
    }, read);
    this.#watch.on("error", (error) => {
      if (!this.#closed) throw error;
    });
    this.#watch.end();
  }
}
