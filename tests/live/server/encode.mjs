// Values as JSON that keeps what JSON lacks: {"$undefined": true}, {"$number": "NaN"}; errors as
// {name, message, ...own fields} without the stack.

export function encode(value, above = []) {
  if (value === undefined) return { $undefined: true };
  if (typeof value === 'number' && !Number.isFinite(value)) return { $number: String(value) };
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  if (above.includes(value)) return '[Circular]';
  const inside = [...above, value];
  if (value instanceof Error) {
    // A MastraError's own toJSON is what goes over the wire (`code`, not `id`).
    const { stack, cause, ...own } = value.toJSON?.() ?? value;
    return { name: value.name, message: value.message, ...fields(own, inside) };
  }
  if (typeof value.toJSON === 'function') return value.toJSON();
  if (Array.isArray(value)) return value.map(item => encode(item, inside));
  return fields(value, inside);
}

function fields(object, above) {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, encode(value, above)]));
}
