import { Buffer } from "node:buffer";
import { Agent, request } from "node:https";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Client } from "../../core/client/client.ts";
import { loadConfig } from "../../core/config/load_config.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import type { LoadTarget, SeenObject } from "./load_target.ts";

/** Number of concurrent changes in a storm. */
const STORM_CHANGES = 20;
/** Time limit of an answer. */
const PATIENCE_MS = 120_000;
/** Text that stands for the deletion of an object. */
const DELETED = "deleted";
/** Code of an error event if the server has forgotten the resourceVersion. */
const GONE = 410;

/** Durations in a storm. */
export interface Storm {
  /** Milliseconds from each change to its answer. */
  readonly each: readonly number[];
  /** Milliseconds from the first change to the last answer. */
  readonly all: number;
}

/** Watch event. */
interface SeenEvent {
  readonly type: string;
  readonly object: SeenObject;
}

interface Waiting {
  readonly text: string;
  readonly start: number;
  readonly resolve: (milliseconds: number) => void;
}

/** Number of objects of a load. */
export interface LoadSize {
  readonly kubeconfig: string;
  readonly target: LoadTarget;
  readonly objects: number;
}

/** Installs the kind of a load and creates its objects. */
export async function createObjects(
  { kubeconfig, target, objects }: LoadSize,
): Promise<void> {
  const client = new Client(await loadConfig({ kubeconfig }));
  await installCrd(client, target.kind);
  await client.close();
  const load = await ChangeLoad.open({ kubeconfig, target, objects });
  await load.createAll();
  load.close();
}

/**
 * Changes objects and waits for the operator's answers. It uses `node:https`, so
 * that it needs little processor time beside the operator and the server.
 */
export class ChangeLoad {
  readonly #server: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #ca: string;
  readonly #agent: Agent;
  readonly #objects: number;
  readonly #target: LoadTarget;
  readonly #waiting: Map<string, Waiting> = new Map();
  #watch: ClientRequest | undefined;
  #closed = false;
  #round = 0;

  private constructor(
    { server, token, ca, size: { objects, target } }: {
      readonly server: string;
      readonly token: string;
      readonly ca: string;
      readonly size: LoadSize;
    },
  ) {
    this.#server = new URL(server);
    this.#ca = ca;
    this.#headers = { authorization: `Bearer ${token}` };
    this.#agent = new Agent({ ca, keepAlive: true, maxSockets: STORM_CHANGES });
    this.#objects = objects;
    this.#target = target;
  }

  /** Opens a load, which begins to watch. */
  static async open(size: LoadSize): Promise<ChangeLoad> {
    const { kubeconfig, target } = size;
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
    const load = new ChangeLoad({ server, token, ca, size });
    const list = await load.#send("GET", `${target.watched}limit=1`);
    const { metadata } = JSON.parse(list) as SeenObject;
    load.#follow(metadata.resourceVersion ?? "");
    return load;
  }

  /** Creates all objects. */
  async createAll(): Promise<void> {
    await this.#forAll((index) => this.#create(index, "new"));
  }

  /**
   * Creates each object, waits for the answer, and deletes it; many at once.
   *
   * @returns Milliseconds from the creation of the first to the end of the last.
   */
  async cycleAll(): Promise<number> {
    const round = this.#nextRound();
    const start = performance.now();
    await this.#forAll(async (index) => {
      const name = this.#target.name(index);
      const text = `${round}-${index}`;
      const answered = this.#expect(name, this.#target.expected(text));
      await this.#create(index, text);
      await answered;
      const deleted = this.#expect(name, DELETED);
      await this.#send("DELETE", `${this.#target.folder}/${name}`);
      await deleted;
    });
    return performance.now() - start;
  }

  /**
   * Changes the specs of all objects, many at once.
   *
   * @returns Resolves when all are changed, with a promise for the answers.
   */
  async changeAll(): Promise<{ readonly storm: Promise<Storm> }> {
    const round = this.#nextRound();
    const start = performance.now();
    const answered: Promise<number>[] = [];
    await this.#forAll((index) =>
      this.#change(index, round, (one) => answered.push(one))
    );
    const storm = Promise.all(answered).then((each) => ({
      each,
      all: performance.now() - start,
    }));
    return { storm };
  }

  /** Changes the specs of all objects and waits for the answers. */
  async storm(): Promise<Storm> {
    return await (await this.changeAll()).storm;
  }

  /**
   * Changes objects one after the other.
   *
   * @returns Milliseconds from each change to its answer.
   */
  async oneByOne(count: number): Promise<readonly number[]> {
    const round = this.#nextRound();
    const times: number[] = [];
    for (let index = 0; index < count; index++) {
      let answered: Promise<number> | undefined;
      await this.#change(index, round, (one) => answered = one);
      times.push(await answered ?? NaN);
    }
    return times;
  }

  /** Resolves at the next answer. */
  firstAnswer(): Promise<void> {
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

  /** Does something for every index, many at once. */
  async #forAll(one: (index: number) => Promise<unknown>): Promise<void> {
    let next = 0;
    const work = async () => {
      while (next < this.#objects) await one(next++);
    };
    await Promise.all(Array.from({ length: STORM_CHANGES }, work));
  }

  #create(index: number, text: string): Promise<unknown> {
    const target = this.#target;
    const { group, version, kind } = target.kind;
    const body = JSON.stringify({
      apiVersion: `${group}/${version}`,
      kind,
      metadata: { name: target.name(index) },
      spec: target.spec(text),
    });
    return this.#send("POST", target.folder, body);
  }

  #change(
    index: number,
    round: string,
    take: (answered: Promise<number>) => void,
  ): Promise<unknown> {
    const name = this.#target.name(index);
    const text = `${round}-${index}`;
    take(this.#expect(name, this.#target.expected(text)));
    const body = JSON.stringify({ spec: this.#target.spec(text) });
    return this.#send("PATCH", `${this.#target.folder}/${name}`, body);
  }

  /** Milliseconds until an object's answer has a text. */
  #expect(name: string, text: string): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const late = setTimeout(
      () => reject(new Error(`Cannot measure: no answer for ${name}`)),
      PATIENCE_MS,
    );
    this.#waiting.set(name, {
      text,
      start: performance.now(),
      resolve(milliseconds) {
        clearTimeout(late);
        resolve(milliseconds);
      },
    });
    promise.catch(() => {});
    return promise;
  }

  #send(method: string, path: string, body = ""): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const sent = request(new URL(path, this.#server), {
      method,
      agent: this.#agent,
      headers: {
        ...this.#headers,
        "content-type": method === "PATCH"
          ? "application/merge-patch+json"
          : "application/json",
        "content-length": String(Buffer.byteLength(body)),
      },
    }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk) => text += chunk);
      response.on("error", reject).on("end", () => {
        if ((response.statusCode ?? 500) < 300) resolve(text);
        else reject(new Error(`Cannot change ${path}: received ${text}`));
      });
    });
    sent.on("error", reject).end(body);
    return promise;
  }

  /** Watches from a resourceVersion; a server may end it, then it resumes. */
  #follow(from: string): void {
    let version = from;
    const path = `${this.#target.watched}watch=true&resourceVersion=${from}`;
    const take = (line: string) => {
      const { type, object } = JSON.parse(line) as SeenEvent;
      if (type === "ERROR") {
        if (object.code !== GONE) {
          throw new Error(`Cannot watch: received ${line}`);
        }
        // Without a version the next watch begins with the state of all objects.
        version = "";
        return;
      }
      version = object.metadata.resourceVersion ?? version;
      const name = this.#target.nameOf(object);
      const waiting = this.#waiting.get(name);
      const text = type === "DELETED" ? DELETED : this.#target.textOf(object);
      if (waiting === undefined || text !== waiting.text) return;
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
