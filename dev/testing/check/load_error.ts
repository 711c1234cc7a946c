const DEV = new URL("../../", import.meta.url).href;
/** Number of places in the user's code that an error shows. */
const SHOWN_PLACES = 3;

/**
 * Creates the error for a file of the user that could not be loaded, with the
 * places in the user's code.
 *
 * @param file The file, as it is to be named.
 * @param error What was thrown.
 */
export function loadError(file: string, error: unknown): Error {
  const { message = String(error), stack = "", position } = Object(
    error,
  ) as Partial<Error> & {
    readonly position?: { readonly file: string; readonly line: number } | null;
  };
  // Node puts the place of an error of syntax in front, and Bun beside it.
  const [, parsed] = /^(file:\S+:\d+)\n/.exec(stack) ?? [];
  const frames = stack.split("\n").flatMap((line) => {
    const [, place] = /^\s+at (.*:\d+:\d+\)?)$/.exec(line) ?? [];
    return place ?? [];
  });
  // What the runtime was called for is the user's; behind it is the import.
  const first = frames.findIndex((place) => !isInner(place));
  const own = first < 0 ? [] : frames.slice(first);
  const end = own.findIndex(isInner);
  const places = [
    ...position ? [`${position.file}:${position.line}`] : [],
    ...parsed === undefined ? [] : [parsed],
    ...own.slice(0, end < 0 ? undefined : end),
  ].slice(0, SHOWN_PLACES);
  return new Error(
    [
      `Cannot load ${file}: ${message}`,
      ...places.map((place) =>
        `    at ${place.replace(/\?incarnation=\d+/g, "")}`
      ),
    ].join("\n"),
    { cause: error },
  );
}

/** Whether a place is in the runtime or in this package. */
function isInner(place: string): boolean {
  return /\b(?:node|ext|native|bun):/.test(place) || place.includes(DEV) ||
    place.includes(decodeURI(new URL(DEV).pathname));
}
