// The keys of a JSON schema as a flat list, with what a reader needs to know of each.

const MOST_DEPTH = 8;

/** Follows references and drops "or null"; descriptions nearer to the key win. */
function resolve(node, root, seen) {
  let found = node;
  for (let i = 0; i < 20; i += 1) {
    let next = null;
    if (found.$ref) {
      seen.push(found.$ref);
      next = found.$ref.replace(/^#\//, '').split('/').reduce((at, part) => at?.[part], root) || {};
    } else {
      const choices = (found.anyOf || found.oneOf || found.allOf || []).filter((each) => each.type !== 'null');
      if (choices.length === 1) [next] = choices;
    }
    if (!next) break;
    const { $ref, anyOf, oneOf, allOf, ...own } = found;
    found = { ...next, ...own };
  }
  return found;
}

const choicesOf = (node) => (node.anyOf || node.oneOf || []).filter((each) => each.type !== 'null');

function typeOf(node, root, depth = 0) {
  const found = resolve(node, root, []);
  if (found.const !== undefined) return JSON.stringify(found.const);
  if (found.enum) return found.enum.filter((each) => each !== null).map((each) => JSON.stringify(each)).join(' or ');
  const choices = choicesOf(found);
  if (choices.length && depth < 3) return [...new Set(choices.map((each) => typeOf(each, root, depth + 1)))].join(' or ');
  const types = [].concat(found.type || []).filter((type) => type !== 'null');
  if (types.includes('array')) return found.items ? `list of ${typeOf(found.items, root, depth + 1)}` : 'list';
  if (types.includes('object')) return 'table';
  let text = types.join(' or ') || 'any value';
  if (found.minimum !== undefined && found.maximum !== undefined) text += `, ${found.minimum} to ${found.maximum}`;
  else if (found.minimum !== undefined) text += `, at least ${found.minimum}`;
  else if (found.maximum !== undefined) text += `, at most ${found.maximum}`;
  return text;
}

function example(node, root) {
  const found = resolve(node, root, []);
  if (found.default !== undefined && found.default !== null) return found.default;
  if (found.const !== undefined) return found.const;
  if (found.enum) return found.enum.find((each) => each !== null);
  const choices = choicesOf(found);
  if (choices.length) return example(choices[0], root);
  const types = [].concat(found.type || []);
  if (types.includes('boolean')) return false;
  if (types.includes('integer') || types.includes('number')) return found.minimum ?? 0;
  if (types.includes('array')) return [];
  if (types.includes('object')) return {};
  return found.pattern?.includes('ns|us') ? '1s' : '';
}

/** The schema of the choice whose key `key` is always `value`, as a root of its own. */
export function variantOf(root, key, value) {
  const choice = (root.oneOf || []).find((each) => each.properties?.[key]?.const === value) || {};
  const { $ref, ...own } = choice;
  const named = $ref ? resolve({ $ref }, root, []) : {};
  return { ...named, ...own, properties: { ...named.properties, ...own.properties }, $defs: root.$defs };
}

/** `{path, type, text, standard, value, table, many}` of each key, nested ones behind their table. */
export function keysOf(root) {
  const keys = new Map();
  const walk = (node, path, depth, parents) => {
    const seen = [];
    const found = resolve(node, root, seen);
    if (depth > MOST_DEPTH || seen.some((ref) => parents.includes(ref))) return;
    const above = [...parents, ...seen];
    for (const choice of choicesOf(found)) walk(choice, path, depth, above);
    if (found.items) walk(found.items, path, depth, above);
    for (const [name, child] of Object.entries(found.properties || {})) {
      const key = path ? `${path}.${name}` : name;
      const own = resolve(child, root, []);
      const isTable = Boolean(own.properties);
      const list = own.items && resolve(own.items, root, []);
      if (!keys.has(key)) {
        keys.set(key, {
          path: key,
          type: typeOf(child, root),
          text: choicesText(own, root),
          standard: own.default === undefined || own.default === null ? null : own.default,
          value: example(child, root),
          table: isTable,
          many: Boolean(list?.properties),
        });
      }
      walk(child, key, depth + 1, above);
    }
  };
  walk(root, '', 0, []);
  return [...keys.values()];
}

function choicesText(own, root) {
  const lines = [(own.description || '').trim()];
  for (const choice of choicesOf(own)) {
    const found = resolve(choice, root, []);
    if (found.const !== undefined && found.description) lines.push(`${JSON.stringify(found.const)}: ${found.description.trim()}`);
  }
  // Line breaks of the source are not paragraphs.
  return lines.filter(Boolean).map((line) => line.replace(/([^\n])\n(?!\n)/g, '$1 ')).join('\n');
}
