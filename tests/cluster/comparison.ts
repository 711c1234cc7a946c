import type { ListMeta } from "@coracle/operator/client";
import type { Target } from "../transcripts/http_client.ts";
import { WireClient } from "../transcripts/http_client.ts";
import { project } from "../transcripts/projection.ts";
import { ScenarioRun } from "../transcripts/scenario.ts";
import type { Step, Transcript } from "../transcripts/transcript.ts";

/** Request: `METHOD path`, body and options. */
export type RequestLine =
  | readonly [line: string, body?: unknown, more?: Partial<Step>]
  | Step;

/** Requests that are sent to both servers in order. */
export interface RequestCase {
  readonly name: string;
  /** Resources that are defined first. */
  readonly definitions?: readonly object[] | undefined;
  /** In paths and bodies `NS` is the namespace of the case. */
  readonly requests: readonly RequestLine[];
}

/** Difference between the embedded and the real server at one path. */
export interface LiveDifference {
  readonly request: string;
  readonly path: string;
  readonly real: unknown;
  readonly embedded: unknown;
}

/** Puts requests to a real and an embedded server, and compares the answers. */
export async function compareServers(
  one: RequestCase,
  targets: { readonly real: Target; readonly embedded: Target },
): Promise<readonly LiveDifference[]> {
  const transcript = transcriptOf(one);
  const [real = [], embedded = []] = await Promise.all(
    [targets.real, targets.embedded].map((target) =>
      answers(target, transcript)
    ),
  );
  return real.flatMap((answer, index) =>
    differences(answer.value, embedded[index]?.value, "").map((difference) => ({
      request: answer.request,
      ...difference,
    }))
  );
}

function transcriptOf(
  { name, definitions = [], requests }: RequestCase,
): Transcript {
  // A namespace of an earlier run may still be on its way out.
  const suffix = crypto.randomUUID().slice(0, 5);
  const namespace = `compare-${name}-${suffix}`;
  const setup = { setup: true, compare: "none" } as const;
  const steps: Step[] = [
    {
      id: "ns",
      method: "POST",
      path: "/api/v1/namespaces",
      body: { metadata: { name: namespace } },
      ...setup,
    },
    // The two things that controllers put into a namespace.
    {
      id: "account",
      poll: `/api/v1/namespaces/${namespace}/serviceaccounts/default`,
      until: { status: 200 },
      ...setup,
    },
    {
      id: "authority",
      poll: `/api/v1/namespaces/${namespace}/configmaps/kube-root-ca.crt`,
      until: { status: 200 },
      ...setup,
    },
    ...definitions.flatMap((definition, index) =>
      definitionSteps(definition, index)
    ),
    ...requests.map((request, index) => stepOf(request, index)),
    {
      id: "end",
      method: "DELETE",
      path: `/api/v1/namespaces/${namespace}`,
      cleanup: true,
    },
  ];
  const text = JSON.stringify(steps).replaceAll(/\bNS\b/g, namespace);
  return { name, topic: "", about: "", steps: JSON.parse(text) };
}

function definitionSteps(definition: object, index: number): Step[] {
  const { spec, metadata } = definition as {
    metadata: { name: string };
    spec: {
      group: string;
      names: { plural: string };
      versions: { name: string; served: boolean }[];
    };
  };
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const { group, names, versions } = spec;
  return [
    {
      id: `crd${index}`,
      method: "POST",
      path,
      body: definition,
      setup: true,
      compare: "none",
    },
    ...versions.filter(({ served }) => served).map(({ name }): Step => ({
      id: `crd${index}-${name}`,
      poll: `/apis/${group}/${name}/${names.plural}`,
      until: { status: 200 },
      setup: true,
      compare: "none",
    })),
    {
      id: `crd${index}-end`,
      method: "DELETE",
      path: `${path}/${metadata.name}`,
      cleanup: true,
    },
  ];
}

function stepOf(request: RequestLine, index: number): Step {
  const id = `s${index}`;
  if (!Array.isArray(request)) {
    return { ...request as Step, id: (request as Step).id || id };
  }
  const [line, body, more] = request as [
    string,
    unknown,
    Partial<Step> | undefined,
  ];
  const [method = "", path = ""] = line.split(" ");
  return {
    id,
    method,
    path,
    ...(body === undefined
      ? {}
      : typeof body === "string"
      ? { rawBody: body }
      : { body }),
    ...more,
  };
}

interface Answer {
  readonly request: string;
  readonly value: unknown;
}

async function answers(
  target: Target,
  transcript: Transcript,
): Promise<readonly Answer[]> {
  const client = new WireClient(target);
  try {
    const run = new ScenarioRun(client);
    const runs = await run.run(transcript);
    await run.cleanUp(transcript);
    const kept = runs.filter(({ step }) => !step.cleanup);
    const names = new Names();
    for (const { step, outcome } of kept) {
      // Which controller is first with a new namespace is a race.
      if (!step.setup) names.learn(outcome);
    }
    return kept.map(({ step, outcome }) => ({
      request: `${step.id} ${step.method ?? "GET"} ${
        step.path ?? step.poll ?? step.watch
      } ${JSON.stringify(step.body ?? step.rawBody) ?? ""}`,
      value: step.compare === "none" && outcome.error === undefined
        ? {}
        : names.replace({ ...project(step, outcome), error: outcome.error }),
    }));
  } finally {
    client.close();
  }
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;

/** Names for values that differ between servers, in order of appearance. */
class Names {
  readonly #uids: Map<string, string> = new Map();
  readonly #revisions: Set<number> = new Set();

  /** Collects the revisions of objects, which are compared by rank. */
  learn(value: unknown): void {
    if (value === null || typeof value !== "object") return;
    const { resourceVersion, uid } = value as {
      resourceVersion?: string;
      uid?: string;
    };
    if (typeof resourceVersion === "string" && typeof uid === "string") {
      this.#revisions.add(Number(resourceVersion));
    }
    for (const item of Object.values(value)) this.learn(item);
  }

  replace(value: unknown, key = ""): unknown {
    if (typeof value === "string") return this.#text(value, key);
    if (Array.isArray(value)) return value.map((item) => this.replace(item));
    if (value === null || typeof value !== "object") return value;
    // That of a list depends on what others write in that time.
    if ("items" in value && "metadata" in value) {
      const { metadata, ...rest } = value;
      const { resourceVersion: _, ...kept } = metadata as ListMeta;
      return { ...this.replace(rest) as object, metadata: this.replace(kept) };
    }
    return Object.fromEntries(
      Object.entries(value).map((
        [name, item],
      ) => [this.#text(name, ""), this.replace(item, name)]),
    );
  }

  #text(text: string, key: string): string {
    if (key === "resourceVersion" && /^[1-9]\d*$/.test(text)) {
      const sorted = [...this.#revisions].sort((a, b) => a - b);
      const rank = sorted.indexOf(Number(text));
      return rank < 0 ? "<rv>" : `<rv:${rank}>`;
    }
    if (key === "continue" && text !== "") return "<continue>";
    return text.replaceAll(UUID, (uid) => {
      const known = this.#uids.get(uid) ?? `<uid:${this.#uids.size}>`;
      this.#uids.set(uid, known);
      return known;
    }).replaceAll(TIME, "<time>")
      // The embedded server shows no difference of two objects in Go's fields.
      .replace(/\n@@ -[^]*$/, "\n");
  }
}

/** Messages of Go's run time, and values that each server generates. */
const OWN_TEXT =
  /[a-z]\w*\.[A-Z]\w+\{|map\[|\(\*|strconv|json:|scheme "pkg|\/registry\/|esource ?[vV]ersion:? .*\d|BEGIN CERTIFICATE|yaml: |of JSON input|invalid character|patch: Invalid value|unknown conversion/;

function isOwnText(real: unknown, embedded: unknown): boolean {
  return typeof real === "string" && typeof embedded === "string" &&
    OWN_TEXT.test(real);
}

function differences(
  real: unknown,
  embedded: unknown,
  path: string,
): { path: string; real: unknown; embedded: unknown }[] {
  if (real === embedded || isOwnText(real, embedded)) return [];
  // Descriptions of columns are not in the data that the embedded one has.
  if (path.endsWith(".description")) return [];
  const composite = (value: unknown): value is object =>
    typeof value === "object" && value !== null;
  if (
    !composite(real) || !composite(embedded) ||
    Array.isArray(real) !== Array.isArray(embedded)
  ) {
    return [{ path, real, embedded }];
  }
  const keys = new Set([...Object.keys(real), ...Object.keys(embedded)]);
  return [...keys].flatMap((key) =>
    differences(
      (real as Record<string, unknown>)[key],
      (embedded as Record<string, unknown>)[key],
      `${path}.${key}`,
    )
  );
}
