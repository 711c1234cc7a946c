import { Buffer } from "node:buffer";
import * as http from "node:http";
import * as https from "node:https";
import { until } from "../support/until.ts";
import { Random } from "../soak/random.ts";
import {
  type AnswerDifference,
  comparable,
  firstDifference,
  type ServerAnswer,
} from "./answers.ts";
import { generated, generatedObject, mutated } from "./mutations.ts";
import { kindKey, type Manifest, type Project } from "./projects.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const APPLY = "application/apply-patch+yaml";
const MERGE = "application/merge-patch+json";
const ANSWER_LIMIT_MS = 120_000;

/** Server that is asked. */
export interface AskedServer {
  readonly url: string;
  readonly token: string;
  readonly authority?: string | undefined;
}

/** Answer of the embedded server that differs from the real one's. */
export interface Finding extends AnswerDifference {
  readonly project: string;
  readonly request: string;
}

/** Sends the same requests to the embedded and the real server. */
export class ComparedServers {
  readonly findings: Finding[] = [];
  answers = 0;
  readonly #servers: readonly Connection[];
  readonly #random: Random;
  readonly #mutations: number;
  #project = "";

  /**
   * @param servers The embedded and the real server.
   * @param options Number of mutations of each kind, and the seed.
   */
  constructor(
    servers: readonly [embedded: AskedServer, real: AskedServer],
    { seed, mutations }: { readonly seed: number; readonly mutations: number },
  ) {
    this.#servers = servers.map((server) => new Connection(server));
    this.#random = new Random(seed);
    this.#mutations = mutations;
  }

  /** Installs a project's definitions, and compares what is said about their objects. */
  async compare(project: Project): Promise<void> {
    this.#project = project.name;
    const namespace = `crds-${crypto.randomUUID().slice(0, 8)}`;
    await this.#both("POST", "/api/v1/namespaces", {
      metadata: { name: namespace },
    });
    const installed: Manifest[] = [];
    try {
      for (const definition of project.definitions) {
        const status = await this.ask("POST", CRDS, definition);
        if (status === 201) installed.push(definition);
      }
      for (const definition of installed) {
        const { group, names } = definition.spec;
        const samples = project.samples.get(kindKey(group, names.kind)) ?? [];
        await this.#compareKind(definition, { namespace, samples });
      }
    } finally {
      for (const { metadata } of installed) {
        await this.#both("DELETE", `${CRDS}/${metadata.name}`);
      }
      for (const { metadata } of installed) {
        await until(`${metadata.name} is gone`, async () => {
          const both = await this.#both("GET", `${CRDS}/${metadata.name}`);
          return both.every(({ status }) => status === 404);
        }, { within: 60_000 });
      }
      await this.#both("DELETE", `/api/v1/namespaces/${namespace}`);
    }
  }

  async #compareKind(
    { spec, metadata }: Manifest,
    { namespace, samples }: {
      readonly namespace: string;
      readonly samples: readonly Manifest[];
    },
  ): Promise<void> {
    const { group, names, scope, versions } = spec;
    const served = versions.filter((version: Manifest) => version.served);
    const pathOf = (version: string) =>
      `/apis/${group}/${version}${
        scope === "Namespaced" ? `/namespaces/${namespace}` : ""
      }/${names.plural}`;
    const here = `${CRDS}/${metadata.name}`;
    await until(`${metadata.name} is established`, async () => {
      const both = await this.#both("GET", here);
      return both.every(({ text }) => text.includes('"InitialNamesAccepted"'));
    }, { within: 60_000 });
    for (const { name } of served) {
      await until(`${metadata.name} is served in ${name}`, async () => {
        const both = await this.#both("GET", pathOf(name));
        return both.every(({ status }) => status === 200);
      }, { within: 60_000 });
    }
    await this.ask("GET", here);
    let number = 0;
    for (const sample of samples.slice(0, 4)) {
      const version = served.find(({ name }: Manifest) =>
        sample.apiVersion === `${group}/${name}`
      );
      if (version === undefined) continue;
      const { labels, annotations } = sample.metadata ?? {};
      await this.#walk(pathOf(version.name), version, {
        ...sample,
        metadata: { name: `s${number++}`, labels, annotations },
      });
    }
    const random = this.#random;
    for (let left = this.#mutations; left > 0; left--) {
      const version = random.pick<Manifest>(served);
      const schema = version.schema?.openAPIV3Schema ?? {};
      const known = samples.filter(({ apiVersion }) =>
        apiVersion === `${group}/${version.name}`
      );
      const base = known.length > 0 && random.next() < 0.7
        ? random.pick(known)
        : generatedObject(random, schema);
      const object = {
        ...mutated(random, schema, base),
        apiVersion: `${group}/${version.name}`,
        kind: names.kind,
        metadata: { name: `m${number++}` },
      };
      const path = pathOf(version.name);
      if (random.next() < 0.3) {
        await this.ask(
          "PATCH",
          `${path}/${object.metadata.name}?fieldManager=crds&force=true`,
          object,
          APPLY,
        );
      } else await this.#walk(path, version, object);
    }
    for (const { name } of served) await this.ask("GET", pathOf(name));
  }

  /** Creates an object, and changes it in the ways that there are. */
  async #walk(path: string, version: Manifest, object: Manifest) {
    const random = this.#random;
    if (await this.ask("POST", path, object) !== 201) return;
    const schema = version.schema?.openAPIV3Schema ?? {};
    const here = `${path}/${object.metadata.name}`;
    const changed = mutated(random, schema, object);
    const { apiVersion: _, kind: __, metadata: ___, ...fields } = changed;
    await this.ask("PATCH", here, fields, MERGE);
    await this.ask("PATCH", `${here}?fieldManager=crds`, changed, APPLY);
    await this.ask("PUT", here, changed);
    if (version.subresources?.status) {
      const status = generated(random, schema.properties?.status ?? {});
      await this.ask("PATCH", `${here}/status`, { status }, MERGE);
    }
    if (version.subresources?.scale) {
      await this.ask("GET", `${here}/scale`);
      await this.ask(
        "PATCH",
        `${here}/scale`,
        { spec: { replicas: 2 } },
        MERGE,
      );
    }
    await this.ask("GET", here);
  }

  /** Sends a request to both servers and keeps their difference; returns the real status. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
    type?: string,
  ): Promise<number> {
    const [embedded, real] = await this.#both(method, path, body, type);
    if (embedded === undefined || real === undefined) return 0;
    this.answers++;
    const difference = firstDifference(comparable(embedded), comparable(real));
    if (difference !== undefined) {
      this.findings.push({
        ...difference,
        project: this.#project,
        request: `${method} ${path} ${JSON.stringify(body) ?? ""}`,
      });
    }
    return real.status;
  }

  #both(
    method: string,
    path: string,
    body?: unknown,
    type?: string,
  ): Promise<ServerAnswer[]> {
    return Promise.all(
      this.#servers.map((server) => server.send(method, path, body, type)),
    );
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }
}

/** Connections to one server. */
class Connection {
  readonly #url: URL;
  readonly #token: string;
  readonly #agent: http.Agent;

  constructor({ url, token, authority }: AskedServer) {
    this.#url = new URL(url);
    this.#token = token;
    this.#agent = this.#url.protocol === "https:"
      ? new https.Agent({ keepAlive: true, ca: authority })
      : new http.Agent({ keepAlive: true });
  }

  send(
    method: string,
    path: string,
    body: unknown,
    type = "application/json",
  ): Promise<ServerAnswer> {
    const { request } = this.#url.protocol === "https:" ? https : http;
    const bytes = body === undefined
      ? undefined
      : Buffer.from(JSON.stringify(body));
    return new Promise((resolve, reject) => {
      const sent = request({
        host: this.#url.hostname,
        port: this.#url.port,
        method,
        path,
        agent: this.#agent,
        timeout: ANSWER_LIMIT_MS,
        headers: {
          authorization: `Bearer ${this.#token}`,
          ...bytes &&
            { "content-type": type, "content-length": bytes.length },
        },
      }, (response) => {
        const parts: Uint8Array[] = [];
        response.on("data", (part: Uint8Array) => parts.push(part));
        response.on("error", reject);
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            text: Buffer.concat(parts).toString(),
            warnings: response.headersDistinct["warning"] ?? [],
          }));
      });
      sent.on(
        "timeout",
        () => sent.destroy(new Error(`no answer to ${method} ${path}`)),
      );
      sent.on("error", reject);
      sent.end(bytes);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}
