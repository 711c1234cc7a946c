/** Disturbance of one run, such as a crash or a lost answer; plain data. */
export interface Perturbation {
  /** Kind of the perturbation, such as `crash`. */
  readonly do: string;
  /** Parameters, such as the number of the write. */
  readonly [parameter: string]: string | number;
}

/** Plan of a run: a scenario, and the perturbations that disturb it. */
export interface Plan {
  /** Name of the scenario of the workload. */
  readonly scenario: string;
  /** Perturbations; empty for the reference run. */
  readonly perturbations: readonly Perturbation[];
}

/**
 * Formats a plan for `--replay`, such as
 * `change-replicas/crash:write=3,place=before`.
 */
export function planText({ scenario, perturbations }: Plan): string {
  const parts = perturbations.map(({ do: name, ...parameters }) => {
    const listed = Object.entries(parameters).map(([key, value]) =>
      `${key}=${typeof value === "number" ? value : `${encoded(value)}`}`
    );
    return listed.length === 0 ? name : `${name}:${listed.join(",")}`;
  });
  return `${encoded(scenario)}/${
    parts.length === 0 ? "none" : parts.join("+")
  }`;
}

/**
 * Parses the text of a plan.
 *
 * @throws {RangeError} If it is not the text of a plan.
 */
export function readPlan(text: string): Plan {
  const [, scenario, rest] = /^([^/]+)\/(.+)$/.exec(text.trim()) ?? [];
  if (scenario === undefined || rest === undefined) throw wrongPlan(text);
  if (rest === "none") {
    return { scenario: decoded(scenario, text), perturbations: [] };
  }
  const perturbations = rest.split("+").map((part): Perturbation => {
    const [, name, parameters] = /^([a-z]+)(?::(.*))?$/.exec(part) ?? [];
    if (name === undefined) throw wrongPlan(text);
    const pairs = (parameters ?? "").split(",").filter((pair) => pair !== "");
    const read = pairs.map((pair) => {
      const [, key, value] = /^(\w+)=(.*)$/.exec(pair) ?? [];
      if (key === undefined || value === undefined) throw wrongPlan(text);
      const isNumber = /^-?\d+(\.\d+)?$/.test(value);
      return [key, isNumber ? Number(value) : decoded(value, text)] as const;
    });
    return { ...Object.fromEntries(read), do: name };
  });
  return { scenario: decoded(scenario, text), perturbations };
}

function encoded(text: string): string {
  const safe = encodeURIComponent(text).replace(
    /[!'()*]/g,
    (found) => `%${found.charCodeAt(0).toString(16)}`,
  );
  // A text that reads like a number stays a text.
  return /^-?\d+(\.\d+)?$/.test(text)
    ? `%${text.charCodeAt(0).toString(16)}${safe.slice(1)}`
    : safe;
}

function decoded(text: string, plan: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw wrongPlan(plan);
  }
}

function wrongPlan(text: string): RangeError {
  return new RangeError(
    `Cannot read the plan: it must read SCENARIO/KIND:PARAMETER=VALUE,…, as a finding has it: received "${text}"`,
  );
}
