/** One step of a path: into a member, an element, or all of them. */
export type PathStep =
  | { readonly key: string }
  | { readonly index: number }
  | { readonly each: true };

/**
 * `name`, `["any name"]`, `[7]` or `[*]`; behind the first step a name needs a
 * dot before it. Names without brackets have no dots, brackets, quotes, spaces.
 */
const STEP_REGEXP =
  /(?<dot>\.)?(?<name>[^.[\]"\s]+)|\[(?:(?<quoted>"(?:[^"\\]|\\.)*")|(?<index>\d+)|(?<each>\*))\]/y;

/**
 * Reads a path such as `spec.replicas`, `status.conditions[*].lastProbeTime`,
 * `spec.containers[0].image` or `metadata.annotations["example.com/a.b"]`.
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
  const { dot, name, quoted, index, each } = groups;
  if (each !== undefined) return { each: true };
  if (index !== undefined) return { index: Number(index) };
  if (quoted !== undefined) {
    try {
      return { key: JSON.parse(quoted) };
    } catch {
      return undefined;
    }
  }
  return name === undefined || (dot === undefined) !== first
    ? undefined
    : { key: name };
}
