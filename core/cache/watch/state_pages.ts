import { ApiError } from "../../api/api_error.ts";
import type { ListHeader } from "../../json/list_scanner.ts";
import { ConnectionFault } from "./connection_fault.ts";
import type { ListPosition } from "./watch_requests.ts";

/** How {@linkcode readStatePages} reads. */
export interface StatePagesOptions {
  /** How many objects a page has at most. */
  readonly pageSize: number;
  /** The state may not be older; `"0"` for any, empty for the newest. */
  readonly resourceVersion: string;
  /** Reads one page and gives what it says beside its items. */
  readonly read: (position: ListPosition) => Promise<ListHeader>;
  /** The server has forgotten the state of the pages: all is read again. */
  readonly onExpired: (error: ApiError) => void;
}

/**
 * Reads a whole state page by page.
 *
 * When reading takes longer than the server keeps the state of the pages, it
 * begins again with one page of everything: that cannot expire, and as no page
 * is ever held as a whole, its size does not matter here.
 *
 * @returns The resourceVersion of the state.
 * @throws {ConnectionFault} If a page leads to itself: there would be no end.
 */
export async function readStatePages(
  options: StatePagesOptions,
): Promise<string> {
  const { resourceVersion, read, onExpired } = options;
  let limit: number | undefined = options.pageSize;
  let continueToken = "";
  for (;;) {
    try {
      const page = await read({ limit, continueToken, resourceVersion });
      if (page.continue === "") return page.resourceVersion;
      if (page.continue === continueToken) throw endlessPages();
      continueToken = page.continue;
    } catch (error) {
      if (continueToken === "" || !ApiError.is(error) || !error.isGone) {
        throw error;
      }
      onExpired(error);
      limit = undefined;
      continueToken = "";
    }
  }
}

function endlessPages(): ConnectionFault {
  return new ConnectionFault(
    "garbage",
    "Cannot read all pages: a page must not lead to itself: received its own continue token",
  );
}
