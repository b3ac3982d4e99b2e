import type { Logger } from '../process/log.ts';

/** Listeners, in the order in which they were added. */
export interface Listeners<Event> {
  readonly add: (listener: (event: Event) => void) => void;
  readonly emit: (event: Event) => void;
}

/** A listener that throws is logged and harms neither the others nor the caller. */
export function createListeners<Event>(log: Logger): Listeners<Event> {
  const listeners: ((event: Event) => void)[] = [];
  return {
    add: (listener) => void listeners.push(listener),
    emit(event) {
      for (const listener of listeners) {
        try {
          listener(event);
        } catch (err) {
          log.error({ err }, 'a listener failed');
        }
      }
    },
  };
}
