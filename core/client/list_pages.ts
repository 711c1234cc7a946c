import type { KubernetesObject, ObjectList } from "../api/object.ts";
import { checkOptions } from "../api/option_rules.ts";
import { type ListOptions, REQUEST_RULES } from "./request_options.ts";

/** How many objects a page has unless told otherwise. */
const PAGE_SIZE = 500;

/**
 * Reads page after page and gives the objects one by one.
 *
 * @param readPage Reads one page.
 * @param options Where to begin, and how long the pages are.
 */
export async function* listPages<T extends KubernetesObject>(
  readPage: (options: ListOptions) => Promise<ObjectList<T>>,
  options: ListOptions,
): AsyncGenerator<T, void, undefined> {
  checkOptions(options, REQUEST_RULES.list, "listAll");
  const { limit = PAGE_SIZE } = options;
  let page = await readPage({ ...options, limit });
  yield* page.items;
  while (page.metadata.continue) {
    page = await readPage({
      ...options,
      limit,
      continue: page.metadata.continue,
      // A continued list is of the first page's moment; servers refuse both.
      resourceVersion: undefined,
      resourceVersionMatch: undefined,
    });
    yield* page.items;
  }
}
