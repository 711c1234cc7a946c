/**
 * Records again what a real control plane answers, in the files that tests read:
 * `npm run record`. Requests stay as they are. An answer is replaced only where it
 * differs, so that what is random (the order of some causes) does not change.
 *
 * @module
 */
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import type { StatusCause, UntypedObject } from "@coracle/operator/core";
import { builtinOf } from "../apiserver/builtin/create_builtin.ts";
import {
  changedBody,
  type InvalidCase,
} from "../apiserver/builtin/invalid_case.ts";
import { causeTexts } from "../apiserver/crd/recorded_lines.ts";
import { commandLine } from "../support/command_line.ts";
import { WireClient, type WireResponse } from "../transcripts/http_client.ts";
import { realTarget } from "../transcripts/real_target.ts";
import { recordTranscripts } from "../transcripts/record.ts";
import { startControlPlane } from "./control_plane.ts";

const { values: { kubernetes } } = commandLine("record answers", {
  kubernetes: { type: "string" },
});
/** Requests at a time. */
const JOBS = 8;
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/** Line of a file, with its recorded causes. */
type Recorded = { readonly causes: readonly StatusCause[] };

class Recorder {
  readonly #client: WireClient;

  constructor(client: WireClient) {
    this.#client = client;
  }

  async send(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<WireResponse> {
    const payload = body === undefined ? undefined : JSON.stringify(body);
    return await this.#client.send({ method, path, headers: {}, payload });
  }

  /** Sends a body and returns the causes of its refusal; none if it is accepted. */
  async causes(
    method: string,
    path: string,
    body: unknown,
  ): Promise<StatusCause[]> {
    const { status, body: answer } = await this.send(method, path, body);
    if (status < 300) return [];
    const { message, details } = answer as {
      message: string;
      details?: { causes?: StatusCause[] };
    };
    if (status === 422 && details?.causes) return details.causes;
    throw new Error(
      `Cannot record ${method} ${path}: received ${status} ${message}`,
    );
  }
}

/** Replaces the answers of a file's lines. */
async function recordFile<T>(
  path: string,
  answer: (line: T) => Promise<T>,
): Promise<void> {
  const url = new URL(`../apiserver/${path}.ndjson`, import.meta.url);
  const lines = (await readFile(url, "utf8")).trimEnd().split("\n");
  let next = 0;
  let replaced = 0;
  await Promise.all(Array.from({ length: JOBS }, async () => {
    while (next < lines.length) {
      const index = next++;
      const line = lines[index] as string;
      try {
        const text = JSON.stringify(await answer(JSON.parse(line)));
        if (text !== line) replaced++;
        lines[index] = text;
      } catch (error) {
        process.stderr.write(
          `${path}:${index + 1}: ${(error as Error).message}\n`,
        );
        process.exitCode = 1;
      }
    }
  }));
  await writeFile(url, `${lines.join("\n")}\n`);
  process.stdout.write(
    `${path}: ${replaced} of ${lines.length} lines differ\n`,
  );
}

function withCauses<T extends Recorded>(
  line: T,
  causes: readonly StatusCause[],
): T {
  const same = JSON.stringify(causeTexts(causes)) ===
    JSON.stringify(causeTexts(line.causes));
  return same ? line : { ...line, causes };
}

/** Records bodies of built-in kinds in which one value is wrong. */
async function recordInvalid(recorder: Recorder): Promise<void> {
  const rich = new URL(
    "../apiserver/builtin/defaulting/rich.ndjson",
    import.meta.url,
  );
  const bodies = new Map(
    (await readFile(rich, "utf8")).trimEnd().split("\n").map((line) => {
      const { name, request } = JSON.parse(line) as {
        name: string;
        request: { body: UntypedObject };
      };
      return [name, request.body];
    }),
  );
  for (const file of ["builtin/invalid", "builtin/invalid_words"]) {
    await recordFile<InvalidCase>(file, async (line) => {
      const body = changedBody(bodies.get(line.case) as UntypedObject, line);
      const { definition } = builtinOf(body);
      const { apiVersion = "", metadata: { namespace } } = body;
      const root = apiVersion.includes("/")
        ? `/apis/${apiVersion}`
        : `/api/${apiVersion}`;
      const within = namespace ? `/namespaces/${namespace}` : "";
      const path = `${root}${within}/${definition.plural}?dryRun=All`;
      const told = line.causes.map(([field, reason, message]) => ({
        field,
        reason,
        message,
      }));
      const { causes } = withCauses(
        { causes: told },
        await recorder.causes("POST", path, body),
      );
      return {
        ...line,
        causes: causes.map(({ field = "", reason = "", message = "" }) =>
          [field, reason, message] as const
        ),
      };
    });
  }
}

interface Cost {
  readonly rule: object;
  readonly self: object;
  readonly maxItems: number;
  readonly factor: string | null;
}

/** Records definitions that are refused or not, and how far rules are too costly. */
async function recordDefinitions(recorder: Recorder): Promise<void> {
  const path = `${CRDS}?dryRun=All`;
  await recordFile<Recorded & { crd: UntypedObject }>(
    "crd/data/definitions",
    async (line) =>
      withCauses(line, await recorder.causes("POST", path, line.crd)),
  );
  await recordFile<Recorded & { schema: object }>(
    "crd/cel/data/cost_limits",
    async (line) =>
      withCauses(
        line,
        await recorder.causes("POST", path, definition("costs", line.schema)),
      ),
  );
}

/** Records the factors by which rules on the items of a list are too costly. */
async function recordCosts(recorder: Recorder): Promise<void> {
  await recordFile<Cost>("crd/cel/data/rule_costs", async (line) => {
    const items = { ...line.self, "x-kubernetes-validations": [line.rule] };
    const l = { type: "array", maxItems: line.maxItems, items };
    const schema = { type: "object", properties: { l } };
    const path = `${CRDS}?dryRun=All`;
    const causes = await recorder.causes(
      "POST",
      path,
      definition("costs", schema),
    );
    const factors = causes.map(({ message = "" }) =>
      /^Forbidden: estimated rule cost .* factor of (.*) \(/.exec(message)?.[1]
    );
    return { ...line, factor: factors.find((factor) => factor) ?? null };
  });
}

function definition(plural: string, schema: object): object {
  const group = `${plural}.record.dev`;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Cluster",
      names: { kind: "A", plural },
      versions: [{
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: schema },
      }],
    },
  };
}

/** Records custom resources, each of a definition of its own. */
async function recordObjects(recorder: Recorder): Promise<void> {
  let count = 0;
  const run = Date.now().toString(36);
  type Line = Recorded & { schema: object; value: unknown };
  await recordFile<Line>("crd/data/objects", async (line) => {
    const plural = `a${count++}x${run}`;
    const path = `/apis/${plural}.record.dev/v1/${plural}`;
    const schema = { type: "object", properties: { spec: line.schema } };
    const wrong = await recorder.causes(
      "POST",
      CRDS,
      definition(plural, schema),
    );
    // Recorded without a server: of schemas whose defaults are invalid.
    if (wrong.length > 0) return line;
    for (;;) {
      if ((await recorder.send("GET", path)).status === 200) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const causes = await recorder.causes("POST", `${path}?dryRun=All`, {
      apiVersion: `${plural}.record.dev/v1`,
      kind: "A",
      metadata: { name: "a" },
      spec: line.value,
    });
    await recorder.send("DELETE", `${CRDS}/${plural}.${plural}.record.dev`);
    return withCauses(line, causes);
  });
}

const plane = await startControlPlane({ kubernetes });
if (plane === undefined) {
  process.stderr.write(
    "Cannot record answers: no KUBECONFIG, no KUBEBUILDER_ASSETS, no Go toolchain\n",
  );
  process.exit(1);
}
process.env["KUBECONFIG"] = plane.kubeconfig;
const target = await realTarget();
const client = new WireClient(target);
try {
  const recorder = new Recorder(client);
  const space = { metadata: { name: "h6" } };
  await recorder.send("POST", "/api/v1/namespaces", space);
  for (const name of ["default", "sa"]) {
    await recorder.send("POST", "/api/v1/namespaces/h6/serviceaccounts", {
      metadata: { name },
    });
  }
  await recordInvalid(recorder);
  await recordDefinitions(recorder);
  await recordCosts(recorder);
  await recordObjects(recorder);
  await recorder.send("DELETE", "/api/v1/namespaces/h6");
  await recordTranscripts(target);
} finally {
  client.close();
  await plane.stop();
}
