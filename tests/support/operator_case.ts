import { test } from "node:test";
import { z } from "zod";
import type { KubernetesObject } from "../../core/api/object.ts";
import type { ObjectKey } from "../../core/api/object_key.ts";
import type { AuditEvent } from "../../core/apiserver/request_handler.ts";
import { ApiServer } from "../../core/apiserver/server.ts";
import type { Client } from "../../core/client/client.ts";
import type { CustomResource } from "../../core/crd/kind_definition.ts";
import { defineKind } from "../../core/crd/define_kind.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import type { DefinedKind } from "../../core/crd/kind_definition.ts";
import type { LogFields, Logger } from "../../core/logger.ts";
import { Operator } from "../../core/operator/operator.ts";
import type { OperatorOptions } from "../../core/operator/operator_options.ts";
import { VirtualClock } from "../../core/virtual_clock.ts";

/** What a gadget asks for. */
export interface GadgetSpec {
  value: string;
  numberOfExecutions?: number | undefined;
}

/** What is reported of a gadget. */
export interface GadgetStatus {
  value?: string | undefined;
  count?: number | undefined;
  observedGeneration?: number | undefined;
  messages?: string[] | undefined;
}

/** The custom resource that scenarios use. */
export type Gadget = CustomResource<GadgetSpec, GadgetStatus>;

/** The kind of gadgets, with generation and a status subresource. */
export const Gadget: DefinedKind<Gadget> = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Gadget",
  spec: z.object({
    value: z.string(),
    numberOfExecutions: z.number().optional(),
  }),
  status: z.object({
    value: z.string(),
    count: z.number(),
    observedGeneration: z.number(),
    messages: z.array(z.string()),
  }).partial(),
}) as unknown as DefinedKind<Gadget>;

/** A log line, as the operator under test wrote it. */
export interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/** An API server without a socket, operators on it, and time under control. */
export class OperatorCase {
  readonly clock: VirtualClock;
  readonly server: ApiServer;
  readonly client: Client;
  /** Every request that the server answered. */
  readonly requests: AuditEvent[];
  /** What the operators logged. */
  readonly log: LoggedLine[] = [];
  readonly #operators: Operator[] = [];

  private constructor(parts: {
    readonly clock: VirtualClock;
    readonly server: ApiServer;
    readonly requests: AuditEvent[];
  }) {
    this.clock = parts.clock;
    this.server = parts.server;
    this.client = parts.server.client;
    this.requests = parts.requests;
  }

  /** Starts a server that has gadgets and a namespace `default`. */
  static async start(): Promise<OperatorCase> {
    await (loaded ??= loadEverything());
    const clock = new VirtualClock({ quietTurns: 8 });
    const requests: AuditEvent[] = [];
    const server = await ApiServer.start({
      port: false,
      clock,
      seed: 1,
      audit: (event) => requests.push(event),
    });
    const made = new OperatorCase({ clock, server, requests });
    await made.install(Gadget);
    return made;
  }

  /** Installs the definition of a kind. */
  async install(kind: DefinedKind): Promise<void> {
    await this.done(installCrd(this.client, kind, { clock: this.clock }));
  }

  /** Makes an operator, which is stopped with the case. */
  operator(options: OperatorOptions = {}): Operator {
    const operator = new Operator({
      client: this.client,
      clock: this.clock,
      random: () => 0.5,
      logger: this.#logger({}),
      ...options,
    });
    this.#operators.push(operator);
    return operator;
  }

  /** Starts an operator. */
  async start(operator: Operator): Promise<void> {
    await this.done(operator.start());
  }

  /** Moves time on until a promise is settled. */
  async done<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const settle = () => {
      settled = true;
    };
    promise.then(settle, settle);
    await this.clock.runUntil(() => settled, { idleTurns: 20_000 });
    return await promise;
  }

  /** Moves time on until something is so. */
  async until(
    condition: () => boolean | Promise<boolean>,
    limit = 120_000,
  ): Promise<void> {
    await this.clock.runUntil(condition, { limit, idleTurns: 5_000 });
  }

  /** Lets everything happen that happens without time passing. */
  settle(): Promise<void> {
    return this.clock.settle();
  }

  /** Moves time on. */
  advance(duration: number): Promise<void> {
    return this.clock.advance(duration);
  }

  /** Makes a gadget. */
  async create(
    name: string,
    spec: Partial<GadgetSpec> = {},
    metadata: Partial<KubernetesObject["metadata"]> = {},
  ): Promise<Gadget> {
    return await this.client.create(Gadget, {
      metadata: { namespace: "default", name, ...metadata },
      spec: { value: "first", ...spec },
    });
  }

  /** A gadget as the server has it; undefined if it is gone. */
  async gadget(
    name: string,
    namespace = "default",
  ): Promise<Gadget | undefined> {
    return await this.client.find(Gadget, { namespace, name });
  }

  /** Changes the spec of a gadget. */
  async change(name: string, spec: Partial<GadgetSpec>): Promise<Gadget> {
    return await this.client.patch(Gadget, keyOf(name), { spec });
  }

  /** Changes labels or annotations of a gadget. */
  async mark(
    name: string,
    metadata: Partial<KubernetesObject["metadata"]>,
  ): Promise<Gadget> {
    return await this.client.patch(Gadget, keyOf(name), { metadata });
  }

  /** Asks for the deletion of a gadget. */
  async remove(name: string): Promise<void> {
    await this.client.delete(Gadget, keyOf(name));
  }

  /** Stops everything. */
  async stop(): Promise<void> {
    for (const operator of this.#operators) await this.done(operator.stop());
    await this.server.stop();
  }

  #logger(context: LogFields): Logger {
    const write = (level: string) => (message: string, fields?: LogFields) => {
      this.log.push({ level, message, fields: { ...context, ...fields } });
    };
    return {
      debug: write("debug"),
      info: write("info"),
      warn: write("warn"),
      error: write("error"),
      with: (fields) => this.#logger({ ...context, ...fields }),
    };
  }
}

function keyOf(name: string): ObjectKey {
  return { namespace: "default", name };
}

let loaded: Promise<void> | undefined;

/**
 * Has everything loaded that is loaded when it is first needed: that takes real
 * time, in which a virtual clock would leap ahead.
 */
async function loadEverything(): Promise<void> {
  const server = await ApiServer.start({ port: false });
  await installCrd(server.client, Gadget);
  await server.client.list(Gadget);
  await server.stop();
}

/** A test of a whole operator on the embedded API server. */
export function scenario(
  title: string,
  play: (one: OperatorCase) => Promise<void>,
): void {
  test(title, { timeout: 60_000 }, async () => {
    const one = await OperatorCase.start();
    try {
      await play(one);
    } finally {
      await one.stop();
    }
  });
}
