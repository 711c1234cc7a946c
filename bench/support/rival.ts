/**
 * Loads a rival from `bench/package.json`. By name, so that the project itself
 * type-checks where the rivals are not installed.
 *
 * @throws {Error} If it is not installed.
 */
export async function loadRival<M>(name: string): Promise<M> {
  try {
    return await import(name) as M;
  } catch (cause) {
    throw new Error(
      `Cannot load ${name}: run "npm ci --prefix bench" first`,
      { cause },
    );
  }
}
