const { setImmediate } = globalThis as {
  setImmediate?: (callback: () => void) => unknown;
};

/**
 * One turn of the event loop: all microtasks run, and I/O that is ready is
 * handled. Not every runtime has `setImmediate`; a message to oneself is a turn
 * on all of them.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (setImmediate !== undefined) {
      setImmediate(resolve);
      return;
    }
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}
