/** Oldest version of Node that runs the commands: `engines` of package.json. */
const OLDEST = [22, 19] as const;

/**
 * Checks the version of Node. An older one would fail later, with errors about
 * missing functions.
 *
 * @param versions Versions of the process; Deno and Bun have one of their own.
 * @throws {Error} If Node is too old.
 */
export function checkNodeVersion(
  versions: Readonly<Record<string, string | undefined>>,
): void {
  const { node = "", deno, bun } = versions;
  if (deno !== undefined || bun !== undefined) return;
  const [major = 0, minor = 0] = node.split(".").map(Number);
  const isOld = major < OLDEST[0] || major === OLDEST[0] && minor < OLDEST[1];
  if (!isOld) return;
  throw new Error(
    `Cannot run coracle: it needs Node ${
      OLDEST.join(".")
    } or later, Deno or Bun: received Node ${node}`,
  );
}
