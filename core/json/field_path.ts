/** Step of a field path: into a member, an element, or several of them. */
export type PathStep =
  | { readonly key: string }
  | { readonly index: number }
  | { readonly each: true }
  /** All elements except those whose field has one of these values. */
  | { readonly field: string; readonly except: readonly string[] };

const NAME = String.raw`[^.[\]"\s]+`;
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;
/**
 * Regular expression of a step: `name`, `["any name"]`, `[7]`, `[*]` or
 * `[name!="a","b"]`. A name needs a dot before it except in the first step. Names
 * without quotes contain no dots, brackets, quotes or spaces.
 */
const STEP_REGEXP = new RegExp(
  String
    .raw`(?<dot>\.)?(?<name>${NAME})|\[(?:(?<quoted>${QUOTED})|(?<index>\d+)|(?<each>\*)|(?<field>${NAME}?)!=(?<except>${QUOTED}(?:,${QUOTED})*))\]`,
  "y",
);

/**
 * Parses a field path such as `spec.replicas`, `status.conditions[*].lastProbeTime`,
 * `spec.containers[0].image`, `metadata.annotations["example.com/a.b"]` or
 * `metadata.managedFields[manager!="page"]`.
 *
 * @throws {SyntaxError} If it is not a field path.
 */
export function parseFieldPath(path: string): PathStep[] {
  const steps: PathStep[] = [];
  let position = 0;
  while (position < path.length) {
    STEP_REGEXP.lastIndex = position;
    const step = readStep(STEP_REGEXP.exec(path)?.groups, steps.length === 0);
    if (step === undefined) break;
    steps.push(step);
    position = STEP_REGEXP.lastIndex;
  }
  if (position < path.length || steps.length === 0) {
    throw new SyntaxError(
      `Cannot read a field path: it must look like spec.list[*]["a.b"]: received ${
        JSON.stringify(path)
      }`,
    );
  }
  return steps;
}

function readStep(
  groups: Record<string, string | undefined> | undefined,
  first: boolean,
): PathStep | undefined {
  if (groups === undefined) return undefined;
  const { dot, name, quoted, index, each, field, except } = groups;
  if (each !== undefined) return { each: true };
  if (index !== undefined) return { index: Number(index) };
  try {
    if (quoted !== undefined) return { key: JSON.parse(quoted) };
    if (field !== undefined) {
      return { field, except: JSON.parse(`[${except}]`) };
    }
  } catch {
    return undefined;
  }
  return name === undefined || (dot === undefined) !== first
    ? undefined
    : { key: name };
}
