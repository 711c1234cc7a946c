import type { Server } from "node:http";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { mkdirSync } from "node:fs";
import process from "node:process";
import type { ApiServer } from "../../apiserver/server.ts";
import type { ApiServerOptions } from "../../apiserver/server_options.ts";
import { closeServer, listenOn, nodeHttp } from "@coracle/operator/internal";
import { readableLogger } from "../readable_log.ts";
import { ETCD_FLAGS } from "./flag_lists.ts";
import { readKubeApiServer } from "./kube_apiserver.ts";
import { type Caller, Meeting } from "./meeting.ts";
import { readProgramFlags } from "./program_flags.ts";

/** Interval of checks of the meeting folder and the parent, in milliseconds. */
const LOOK_MS = 20;

/** Settings that `coracle envtest` wrote into the scripts. */
export type EnvtestSettings = Pick<
  ApiServerOptions,
  "controllers" | "simulate"
>;

interface StandInDeps {
  readonly settings: EnvtestSettings;
  /** File of the objects. */
  readonly data: string;
  readonly meeting: Meeting;
  /** Server that answers as etcd. */
  readonly health: Server;
  readonly end: (why: string) => void;
}

/**
 * Process that stands in for etcd, and runs the API server when the script
 * `kube-apiserver` asks for it. Both share one runtime, which loads its modules
 * while the caller prepares certificates. The objects are stored in
 * `--data-dir`.
 */
export class EtcdStandIn {
  readonly #deps: StandInDeps;
  readonly #parent = process.ppid;
  #server: ApiServer | undefined;
  #caller: Caller | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #isBusy = false;

  private constructor(deps: StandInDeps) {
    this.#deps = deps;
  }

  /**
   * Starts to listen.
   *
   * @param args Flags of etcd.
   * @param end Called when the process that started this one has ended.
   * @throws {Error} If a flag is wrong or the port is in use.
   */
  static async start(
    args: readonly string[],
    settings: EnvtestSettings,
    end: (why: string) => void,
  ): Promise<EtcdStandIn> {
    const flags = readProgramFlags(args, ETCD_FLAGS);
    const { host, port } = clientAddress(
      flags.get("listen-client-urls")?.at(-1) ?? "http://localhost:2379",
    );
    const folder = resolve(flags.get("data-dir")?.at(-1) ?? "default.etcd");
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const health = nodeHttp().createServer();
    await listenOn(health, { port, host }, "start etcd");
    const meeting = Meeting.open(port);
    const standIn = new EtcdStandIn({
      settings,
      data: join(folder, "coracle.jsonl"),
      meeting,
      health,
      end,
    });
    standIn.#serve();
    return standIn;
  }

  #serve(): void {
    this.#deps.health.on("request", ({ url = "/" }, response) => {
      const answer = ANSWERS[url.split("?")[0] ?? ""];
      response.writeHead(answer === undefined ? 404 : 200, {
        "content-type": "application/json",
      });
      response.end(answer ?? "404 page not found\n");
      // The API server will be asked for next.
      response.once("close", () => void load());
    });
    this.#timer = setInterval(() => void this.#look(), LOOK_MS);
  }

  async #look(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    try {
      if (process.ppid !== this.#parent) this.#deps.end("its parent has ended");
      if (this.#caller?.isGone()) await this.#stopServer();
      if (this.#server === undefined) {
        const caller = this.#deps.meeting.nextCaller();
        if (caller !== undefined) await this.#startServer(caller);
      }
    } finally {
      this.#isBusy = false;
    }
  }

  async #startServer(caller: Caller): Promise<void> {
    try {
      await caller.answer();
      const { options, notes } = readKubeApiServer(caller.args);
      for (const note of notes) {
        caller.say(`${note} has no effect on the embedded API server`);
      }
      const { ApiServer } = await load();
      this.#server = await ApiServer.start({
        ...this.#deps.settings,
        ...options,
        data: this.#deps.data,
        logger: readableLogger({
          write: (text) => caller.say(text.trimEnd()),
          colors: false,
          level: "warn",
        }),
      });
      this.#caller = caller;
      caller.say(`Serving on ${this.#server.url}`);
    } catch (error) {
      caller.say((error as Error).message);
      caller.close();
    }
  }

  async #stopServer(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    await server?.stop();
    this.#caller?.close();
    this.#caller = undefined;
  }

  /** Stops the API server and closes the ports. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#isBusy = true;
    await this.#stopServer();
    this.#deps.meeting.close();
    await closeServer(this.#deps.health);
  }
}

const ANSWERS: Readonly<Record<string, string>> = {
  "/health": '{"health":"true","reason":""}',
  "/version": '{"etcdserver":"3.6.0","etcdcluster":"3.6.0","storage":"3.6.0"}',
};

/** Loads the API server, which takes longer than the modules of etcd. */
function load(): Promise<typeof import("../../apiserver/server.ts")> {
  void import("../../apiserver/builtin/builtin_definitions.ts");
  void import("../../apiserver/crd/custom_resources.ts");
  void import("@coracle/operator/client");
  return import("../../apiserver/server.ts");
}

/** Address of the first URL of `--listen-client-urls`. */
function clientAddress(
  urls: string,
): { readonly host: string; readonly port: number } {
  const [text = ""] = urls.split(",");
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:") {
    const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
    if (isIP(host) || host === "localhost") {
      return { host, port: Number(url.port || "80") };
    }
  }
  throw new Error(
    `Cannot start etcd: --listen-client-urls must be http:// with an IP address or localhost: received ${urls}`,
  );
}
