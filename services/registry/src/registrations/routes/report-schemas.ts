import { documented, memberRules } from '@rollcall/platform/http/documented.ts';
import { ONE_LINE } from '@rollcall/platform/http/patterns.ts';
import { Type } from 'typebox';
import { detailNameRules, versionRules, wordRules } from '../../common/validation.ts';
import { named, ServiceName } from '../../http/schemas.ts';
import { compositionStatuses } from '../domain/registration.ts';
import { InstanceId } from './registration-schemas.ts';

const At = Type.Optional(
  Type.String({
    description: 'RFC 3339, without leap seconds; now when absent',
    ...documented({ format: 'date-time' }),
  }),
);
const Details = Type.Optional(
  Type.Record(Type.String(), Type.Unknown(), {
    description:
      'Free; `version` becomes the version that runs. At most 16 KiB of JSON; no text in it, of whatever depth, has control characters',
    ...documented({
      properties: {
        version: {
          anyOf: [{ type: 'string', ...versionRules }, { allOf: [{ not: { type: 'string' } }, named('Printable')] }],
        },
      },
      propertyNames: { ...detailNameRules, ...memberRules },
      additionalProperties: named('Printable'),
    }),
  }),
);
const Word = Type.String({ description: '1 to 64 characters, none of control', ...documented(wordRules) });

const instance = { service_name: ServiceName, instance_id: Type.Optional(InstanceId) };

/** Contract 1, `/webhooks/health`. */
export const HealthBody = Type.Object({ ...instance, status: Word, timestamp: At, details: Details });

/** Contract 1, `/webhooks/lifecycle`. */
export const LifecycleBody = Type.Object({ ...instance, event: Word, timestamp: At, details: Details });

/** How the schema of a service stands with the graph. */
export const CompositionBody = Type.Object({
  status: Type.Enum([...compositionStatuses]),
  message: Type.String({
    minLength: 1,
    maxLength: 1024,
    ...ONE_LINE,
    description: 'Why, for people; on one line',
  }),
});

export const ReceivedResponse = Type.Object({ status: Type.Literal('received'), message: Type.String() });
