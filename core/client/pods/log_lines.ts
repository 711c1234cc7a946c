/** A longer line is given in pieces. */
const LONGEST_LINE = 1 << 20;

/**
 * Cuts a log into its lines, empty ones too. A line longer than a mebibyte comes
 * in pieces, since logs may hold anything.
 */
export async function* logLines(
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
    if (rest.length < LONGEST_LINE) continue;
    yield rest;
    rest = "";
  }
  rest += decoder.decode();
  if (rest !== "") yield rest;
}
