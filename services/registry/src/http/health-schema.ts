import { Type } from 'typebox';
import { Timestamp } from './schemas.ts';

/** Contract 1, "Health report". */
export const HealthReport = Type.Object({
  status: Type.Union([Type.Literal('healthy'), Type.Literal('unhealthy')]),
  service: Type.String(),
  version: Type.String(),
  store: Type.Union([Type.Literal('connected'), Type.Literal('disconnected')], { description: 'The Kubernetes API' }),
  database: Type.Union([Type.Literal('connected'), Type.Literal('disconnected')], {
    description: 'PostgreSQL, which holds history and releases; discovery does without it',
  }),
  cache: Type.Object({
    size: Type.Integer({ description: 'Services in memory' }),
    hits: Type.Integer(),
    misses: Type.Integer({ description: 'Lookups that went to the backing store' }),
    hit_ratio: Type.Number({ description: 'hits / (hits + misses); 0 before the first lookup' }),
    last_refresh: Timestamp,
  }),
});
