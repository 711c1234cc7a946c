import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import type { TestClusterOptions } from "@coracle/dev";
import type { Faults } from "@coracle/dev/apiserver";
import type {
  KubernetesObject,
  LogFields,
  Logger,
  ObjectKey,
  OperatorOptions,
  Transport,
} from "@coracle/operator/core";
import type { CustomResource, DefinedKind } from "@coracle/operator/crd";
import { TestCluster } from "../../dev/testing/test_cluster.ts";
import { Client } from "../../core/client/client.ts";
import { defineKind } from "../../core/crd/define_kind.ts";
import { installCrd } from "../../core/crd/install_crd.ts";
import { Operator } from "../../core/operator/operator.ts";
import { VirtualClock } from "../../dev/testing/virtual_clock.ts";
import {
  type RecordedRequest,
  RecordingTransport,
} from "./recording_transport.ts";
import { removeObjects } from "./remove_objects.ts";
import { inTime } from "./in_time.ts";
import { LeakGuard } from "./leaks.ts";
import { ON_REAL_CLUSTER } from "./scenario_cluster.ts";

/** Spec of a gadget. */
export interface GadgetSpec {
  value: string;
  numberOfExecutions?: number | undefined;
}

/** Status of a gadget. */
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

/** Milliseconds of real time that one wait may take. */
const WAIT_LIMIT_MS = ON_REAL_CLUSTER ? 150_000 : 45_000;

/** Log line of an operator under test. */
export interface LoggedLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

/**
 * Operators on an embedded server, or on the real cluster of the run, with a
 * virtual clock. Each wait has a limit in real time and fails with its condition.
 */
export class OperatorFixture {
  readonly clock: VirtualClock;
  readonly client: Client;
  /** Transport with all rights. */
  readonly transport: Transport;
  /** Log lines of all operators. */
  readonly log: LoggedLine[] = [];
  readonly #cluster: TestCluster;
  readonly #requests: RecordingTransport;
  readonly #operators: Operator[] = [];
  readonly #guard: LeakGuard = new LeakGuard();

  private constructor(cluster: TestCluster, clock: VirtualClock) {
    this.#cluster = cluster;
    this.#requests = new RecordingTransport(cluster.transport);
    this.clock = clock;
    this.transport = this.#requests;
    this.client = new Client({ transport: this.transport }, { clock });
  }

  /** Starts a cluster with the kind Gadget and the namespace `default`. */
  static async start(
    { server }: Pick<ScenarioOptions, "server"> = {},
  ): Promise<OperatorFixture> {
    const clock = new VirtualClock({ quietTurns: 8 });
    const cluster = await TestCluster.start({
      clock,
      kinds: [Gadget],
      namespace: "default",
      server: { seed: 1, ...server },
    });
    if (ON_REAL_CLUSTER) await removeLeftovers(cluster.client);
    return new OperatorFixture(cluster, clock);
  }

  /** Requests to the server with their responses. */
  get requests(): readonly RecordedRequest[] {
    return this.#requests.requests;
  }

  /** Faults of the server. */
  get faults(): Faults {
    return this.#cluster.faults;
  }

  /** Installs the definition of a kind. */
  async install(kind: DefinedKind): Promise<void> {
    await this.done(installCrd(this.client, kind, { clock: this.clock }));
  }

  /** Creates an operator, which is stopped with the fixture. */
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

  /** Advances time until a promise is settled. */
  done<T>(promise: Promise<T>): Promise<T> {
    return inTime(
      "a promise that is settled as time advances",
      this.#cluster.complete(promise),
      WAIT_LIMIT_MS,
    );
  }

  /** Advances time until a condition holds. */
  async until(
    condition: () => boolean | Promise<boolean>,
    limit = 120_000,
  ): Promise<void> {
    await inTime(
      `the condition ${condition}`,
      this.#cluster.until(condition, { within: limit }),
      WAIT_LIMIT_MS,
    );
  }

  /** Lets all work finish that needs no time to pass. */
  settle(): Promise<void> {
    return this.clock.settle();
  }

  /** Advances time by milliseconds. */
  advance(duration: number): Promise<void> {
    return inTime(
      `time advances by ${duration} ms`,
      this.clock.advance(duration),
      WAIT_LIMIT_MS,
    );
  }

  /** Creates a gadget. */
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

  /** Reads a gadget from the server; undefined if none exists. */
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

  /** Deletes a gadget. */
  async remove(name: string): Promise<void> {
    await this.client.delete(Gadget, keyOf(name));
  }

  /**
   * Stops all operators and the cluster, and asserts that nothing is left of
   * them; removes created objects from a real one.
   */
  async stop(): Promise<void> {
    for (const operator of this.#operators) await this.done(operator.stop());
    await this.settle();
    const open = [...this.#requests.open.values()];
    if (ON_REAL_CLUSTER) {
      await removeObjects(this.#cluster.client, this.#requests.made);
    }
    await this.client.close();
    await this.#cluster.stop();
    await this.settle();
    this.#guard.check(this.clock);
    assert.deepEqual(open, [], "a request or a watch is left");
    for (const operator of this.#operators) {
      for (const health of operator.health().controllers) {
        const { name, primaries, waiting, delayed, failing } = health;
        assert.deepEqual(
          { name, primaries, waiting, delayed, failing },
          { name, primaries: 0, waiting: 0, delayed: 0, failing: 0 },
        );
      }
    }
  }

  #logger(context: LogFields): Logger {
    type Level = "debug" | "info" | "warn" | "error";
    const write = (level: Level) => (message: string, added?: LogFields) => {
      const fields = { ...context, ...added };
      this.log.push({ level, message, fields });
      // For the error of a wait that was too long.
      this.#cluster.logger[level](message, fields);
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

/** Removes the objects of a test that was killed. */
async function removeLeftovers(client: Client): Promise<void> {
  const path = "/apis/sample.coracle.dev/v1/namespaces/default/gadgets";
  const { items } = await client.list(Gadget, { namespace: "default" });
  await removeObjects(
    client,
    items.map(({ metadata }) => `${path}/${metadata.name}`),
  );
}

/** Options of {@linkcode scenario}. */
export interface ScenarioOptions {
  /** Reason why it can run on the embedded server only. */
  readonly embedded?: string | undefined;
  /** Further options of the embedded server. */
  readonly server?: TestClusterOptions["server"];
}

/**
 * Defines a test of a whole operator, on the embedded API server or on the real
 * cluster of the run.
 */
export function scenario(
  title: string,
  play: (fixture: OperatorFixture) => Promise<void>,
  options: ScenarioOptions = {},
): void {
  const skip = ON_REAL_CLUSTER && options.embedded;
  // A real cluster is slow, above all at the deletion of namespaces.
  const timeout = ON_REAL_CLUSTER ? 180_000 : 60_000;
  test(title, { timeout, skip }, async () => {
    const fixture = await OperatorFixture.start(options);
    try {
      await play(fixture);
    } catch (error) {
      // Its own failure says more than what is left because of it.
      await fixture.stop().catch(() => {});
      throw error;
    }
    await fixture.stop();
  });
}
