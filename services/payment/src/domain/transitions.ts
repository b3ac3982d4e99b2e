/**
 * What a state becomes by an event. Tables are total, so that each pair is decided:
 * - a state: the event moves it there,
 * - `stays`: the event is late or repeated. It is kept in the history, and changes nothing,
 * - `refused`: somebody asks for what cannot be done now.
 */
export type TransitionTable<State extends string, Event extends string> = Readonly<
  Record<State, Readonly<Record<Event, State | 'stays' | 'refused'>>>
>;

export type Transition<State extends string> =
  | { readonly kind: 'moved'; readonly to: State }
  | { readonly kind: 'stays' }
  | { readonly kind: 'refused' };

/** The transition for a target of a table. */
export function transitionTo<State extends string>(target: State | 'stays' | 'refused'): Transition<State> {
  if (isNoMove(target)) return { kind: target };
  return { kind: 'moved', to: target };
}

/** Looks an event up. It is the only way by which a state changes. */
export function move<State extends string, Event extends string>(
  table: TransitionTable<State, Event>,
  from: State,
  event: Event,
): Transition<State> {
  return transitionTo<State>(table[from][event]);
}

function isNoMove(target: string): target is 'stays' | 'refused' {
  return target === 'stays' || target === 'refused';
}
