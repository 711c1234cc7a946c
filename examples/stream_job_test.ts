import { type Client, type KubernetesObject, untyped } from "@coracle/operator";
import type { PhasedStatus } from "@coracle/operator/workflows";
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import type { Job } from "./job_manager.ts";
import {
  Program,
  type RunningExample,
  until,
  withExample,
} from "./run_example.ts";

const StreamJob = untyped({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "StreamJob",
});
const FOLDER = mkdtempSync(join(tmpdir(), "coracle-stream-job-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const HAS_KUBECTL = spawnSync("kubectl", ["version", "--client"]).status === 0;
const KEY = { namespace: "default", name: "clicks" };

/** Job manager in a process that can be killed and started again. */
class JobManagerProcess {
  #program: Program | undefined;
  #port = "0";
  readonly #file: string = join(FOLDER, `state-${crypto.randomUUID()}.json`);

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const args = [this.#port, this.#file];
    this.#program = new Program("job_manager.ts", { args });
    [, this.#port = "0"] = await this.#program.says(/at http:.*:(\d+)/);
  }

  /** Kills it with all jobs. */
  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** Reads a job from the job manager. */
  async job(id: string): Promise<Job> {
    return await (await fetch(`${this.url}/jobs/${id}`)).json();
  }
}

/** Defines a test with the operator, the job manager and a cluster. */
function streamTest(
  title: string,
  body: (
    example: RunningExample & { readonly manager: JobManagerProcess },
  ) => Promise<void>,
  options: { readonly skip?: string | false } = {},
): void {
  test(title, { timeout: 120_000, ...options }, async () => {
    const manager = new JobManagerProcess();
    await manager.start();
    try {
      await withExample(
        "stream_job.ts",
        (example) => body({ ...example, manager }),
        { JOB_MANAGER_URL: manager.url, POLL: "100ms" },
      )();
    } finally {
      await manager.kill();
    }
  });
}

type StreamJob = KubernetesObject & {
  spec: Record<string, unknown>;
  status?: PhasedStatus & { job?: { id: string; state: string } };
};

async function clicks(client: Client): Promise<StreamJob> {
  return await client.get(StreamJob, KEY) as unknown as StreamJob;
}

/** Waits until the job is stable at its newest generation. */
async function stable(client: Client): Promise<StreamJob> {
  return await until("the job is stable", async () => {
    const object = await clicks(client);
    const { lifecycle, observedGeneration } = object.status ?? {};
    return lifecycle === "Stable" &&
        observedGeneration === object.metadata.generation
      ? object
      : undefined;
  });
}

streamTest(
  "The stream job operator starts, scales, upgrades and suspends a job",
  async ({ client, manager }) => {
    await client.create(StreamJob, {
      metadata: KEY,
      spec: { program: "count:1" },
    });
    const first = await manager.job((await stable(client)).status!.job!.id);
    await client.patch(StreamJob, KEY, { spec: { parallelism: 4 } });
    await until(
      "four at once",
      async () => (await manager.job(first.id)).parallelism === 4,
    );

    await client.patch(StreamJob, KEY, { spec: { program: "count:2" } });
    const second = await manager.job((await stable(client)).status!.job!.id);
    assert.notEqual(second.id, first.id);
    assert.equal(second.from, `savepoints/${first.id}`);
    assert.equal((await manager.job(first.id)).state, "canceled");

    await client.patch(StreamJob, KEY, { spec: { suspend: true } });
    await until(
      "the job is suspended",
      async () => (await clicks(client)).status?.lifecycle === "Suspended",
    );
    const { records } = await manager.job(second.id);
    await client.patch(StreamJob, KEY, { spec: { suspend: false } });
    const third = await manager.job((await stable(client)).status!.job!.id);
    assert.equal(third.from, `savepoints/${second.id}`);
    assert.ok(third.records >= records, "nothing was lost");

    await client.delete(StreamJob, KEY);
    await until(
      "the object is gone",
      async () => await client.find(StreamJob, KEY) === undefined,
    );
    assert.equal((await manager.job(third.id)).state, "canceled");
  },
);

streamTest(
  "The stream job operator recovers a job whose manager disappeared",
  async ({ client, manager }) => {
    await client.create(StreamJob, {
      metadata: KEY,
      spec: { program: "count:1" },
    });
    const { id } = (await stable(client)).status!.job!;
    const before = await until("a checkpoint", async () => {
      const { status } = await clicks(client);
      const job = await manager.job(id);
      return status?.job !== undefined && "checkpoint" in status.job &&
          job.checkpoint !== undefined
        ? job
        : undefined;
    });
    await manager.kill();
    await until("the operator says so", async () => {
      const { status } = await clicks(client);
      return status?.conditions?.some(({ type, reason }) =>
        type === "Ready" && reason === "JobManagerUnreachable"
      );
    });
    await manager.start();
    const job = await until("another job runs", async () => {
      const { status } = await clicks(client);
      return status?.lifecycle === "Stable" && status.job?.id !== id &&
        await manager.job(status.job!.id);
    });
    assert.equal(job.from, `checkpoints/${id}`);
    assert.ok(job.records >= before.records, "nothing was lost");
  },
);

streamTest(
  "kubectl wait is right about a stream job from its upgrade to its recovery",
  async ({ client, manager, kubeconfig }) => {
    const kubectl = async (command: string, ...more: readonly string[]) => {
      const options = `--kubeconfig=${kubeconfig} --cache-dir=${FOLDER}`;
      const args = [...`${options} ${command}`.split(" "), ...more];
      return (await promisify(execFile)("kubectl", args)).stdout;
    };
    const wait = (condition: string) =>
      kubectl(`wait streamjob/clicks --timeout=20s --for=${condition}`);
    const columns = async () => {
      const [heading = "", line = ""] = (await kubectl("get streamjob clicks"))
        .split("\n");
      assert.deepEqual(heading.trim().split(/\s+/), [
        "NAME",
        "JOB",
        "READY",
        "REASON",
        "AGE",
      ]);
      return line.trim().split(/\s+/).slice(0, 4).join(" ");
    };
    const set = (spec: object) =>
      kubectl(
        "patch streamjob clicks --type=merge -p",
        JSON.stringify({ spec }),
      );
    const running = async () =>
      (await manager.job((await clicks(client)).status!.job!.id)).program;

    const file = join(FOLDER, "clicks.json");
    const object = {
      apiVersion: "sample.coracle.dev/v1",
      kind: "StreamJob",
      metadata: { name: "clicks" },
      spec: { program: "count:1" },
    };
    await writeFile(file, JSON.stringify(object));
    await kubectl(`apply -f ${file}`);
    await wait("condition=Ready");
    assert.equal(await columns(), "clicks running True Stable");

    // An upgrade: when it is Ready, the new program runs.
    await set({ program: "count:2" });
    await wait("condition=Ready");
    assert.equal(await running(), "count:2");
    assert.equal(await columns(), "clicks running True Stable");

    // A failed upgrade is not Ready and has the reason.
    await set({ program: "count:3-stuck" });
    await wait("jsonpath={.status.lifecycle}=Deployed");
    assert.equal(await columns(), "clicks starting False Deployed");
    await assert.rejects(
      kubectl("wait streamjob/clicks --timeout=1s --for=condition=Ready"),
      { code: 1 },
    );

    // It is rolled back on request: the spec is still not fulfilled, and will
    // not be without a change.
    await set({ rollbackAfter: "1s" });
    await wait("condition=Stalled");
    await wait("jsonpath={.status.job.state}=running");
    assert.equal(await running(), "count:2");
    assert.equal(await columns(), "clicks running False RolledBack");
    assert.match(
      await kubectl("describe streamjob clicks"),
      /Generation 3 did not become stable: generation 2 runs again/,
    );

    // An invalid spec is Stalled, and the job keeps running.
    await set({ program: "another" });
    await wait("jsonpath={.status.error.reason}=ValidationError");
    assert.equal(await columns(), "clicks running False ValidationError");
    assert.match(
      await kubectl("get events"),
      /Warning\s+ValidationError/,
    );

    // A valid spec recovers everything.
    await set({ program: "count:4" });
    await wait("condition=Ready");
    assert.equal(await running(), "count:4");
    assert.equal(await columns(), "clicks running True Stable");
    assert.doesNotMatch(
      await kubectl("get streamjob clicks -o yaml"),
      /type: (Stalled|Reconciling)/,
    );
  },
  { skip: !HAS_KUBECTL && "kubectl is not installed" },
);
