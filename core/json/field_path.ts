/** One step of a path: into a member, an element, all of them, or most. */
export type PathStep =
  | { readonly key: string }
  | { readonly index: number }
  | { readonly each: true }
  /** Every element but those whose field is one of these texts. */
  | { readonly field: string; readonly except: readonly string[] };

const NAME = String.raw`[^.[\]"\s]+`;
const QUOTED = String.raw`"(?:[^"\\]|\\.)*"`;
/**
 * `name`, `["any name"]`, `[7]`, `[*]` or `[name!="a","b"]`; behind the first
 * step a name needs a dot before it. Names without quotes have no dots,
 * brackets, quotes, spaces.
 */
const STEP_REGEXP = new RegExp(
  String
    .raw`(?<dot>\.)?(?<name>${NAME})|\[(?:(?<quoted>${QUOTED})|(?<index>\d+)|(?<each>\*)|(?<field>${NAME}?)!=(?<except>${QUOTED}(?:,${QUOTED})*))\]`,
  "y",
);

/**
 * Reads a path such as `spec.replicas`, `status.conditions[*].lastProbeTime`,
 * `spec.containers[0].image`, `metadata.annotations["example.com/a.b"]` or
 * `metadata.managedFields[manager!="page"]`.
 *
 * @throws {SyntaxError} If it is not a path.
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
