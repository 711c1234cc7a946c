/** The text of chunks of UTF-8, which may be cut anywhere. */
export async function textOf(
  chunks: AsyncIterable<Uint8Array>,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
