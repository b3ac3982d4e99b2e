/** Calls listeners by event name; the part that handles show to their users. */
export interface Subscribable<Events extends object> {
  /**
   * Calls the listener at every such event. A listener that throws harms neither the others nor the
   * sender: its error surfaces as an uncaught exception, as with an EventTarget.
   *
   * @returns a function that ends the subscription.
   */
  on<Type extends keyof Events>(type: Type, listener: (event: Events[Type]) => void): () => void;
}

export interface Emitter<Events extends object> extends Subscribable<Events> {
  emit<Type extends keyof Events>(type: Type, event: Events[Type]): void;
}

/**
 * An event emitter that works in Node and browsers, and for which an `error` nobody listens to is
 * nothing special.
 */
export function createEmitter<Events extends object>(): Emitter<Events> {
  const listeners: { [Type in keyof Events]?: Set<(event: Events[Type]) => void> } = {};
  return {
    on(type, listener) {
      const ofType = listeners[type] ?? new Set();
      listeners[type] = ofType;
      ofType.add(listener);
      return () => void ofType.delete(listener);
    },
    emit(type, event) {
      for (const listener of listeners[type] ?? []) {
        try {
          listener(event);
        } catch (error) {
          queueMicrotask(() => {
            throw error;
          });
        }
      }
    },
  };
}
