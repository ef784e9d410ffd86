// The static page: a few lines play the model of a widget. Parameters live in the page's address.

const stand_in = (state, compute) => {
  const heard = new Map();
  const say = (name) => (heard.get(name) ?? []).forEach((f) => f());
  const model = {
    get: (key) => state[key],
    set: (key, value) => { state[key] = value; },
    on: (name, f) => heard.set(name, [...(heard.get(name) ?? []), f]),
    save_changes: () => { work(); say("change:params"); say("change:values"); },
  };
  const work = () => {
    try {
      state.values = { ...compute(state.params, state.data), of: { ...state.params } };
    } catch (error) {
      console.error(error);
      state.values = { of: { ...state.params }, error: `No number here: ${error.message}` };
    }
  };
  work();
  return model;
};

const closest = (stops, value) => stops.reduce((a, b) => (Math.abs(b - value) < Math.abs(a - value) ? b : a));

const from_address = ({ name, sliders, again, start }, params) => {
  const query = new URLSearchParams(location.search);
  for (const { name: key, stops } of sliders) {
    const text = query.get(`${name}.${key}`);
    if (text !== null && text.trim() !== "" && Number.isFinite(+text)) params[key] = closest(stops, +text);
  }
  const draw = Number.parseInt(query.get(`${name}.draw`), 10);
  if (again && draw > 0 && draw < 10000) params.draw = draw;
  return params;
};

const to_address = ({ name, start }, params) => {
  const address = new URL(location);
  for (const [key, value] of Object.entries(start)) {
    if (params[key] === value) address.searchParams.delete(`${name}.${key}`);
    else address.searchParams.set(`${name}.${key}`, +(+params[key]).toPrecision(8));
  }
  const changed = [...address.searchParams.keys()].some((key) => key.startsWith(`${name}.`)), place = `#explorer-${name}`;
  if (changed) address.hash = place; // whoever gets the link arrives here, not at the top of the page
  else if (address.hash === place) address.hash = "";
  if (address.href !== location.href) history.replaceState(history.state, "", address);
};

const begin = async (place) => {
  const { explorer: name, family } = place.dataset; // a family of curves has its numbers with it
  const [module, { spec, data }] = await Promise.all([
    import(`./${family ? "family" : name}.mjs`),
    family ? JSON.parse(family) : fetch(new URL(`${name}.json`, import.meta.url)).then((answer) => answer.json()),
  ]);
  const own = { ...spec.start, ...JSON.parse(place.dataset.start ?? "{}") };
  const state = { spec: { ...spec, start: own }, data: module.prepare ? module.prepare(data) : data, params: from_address(spec, { ...own }) };
  const model = stand_in(state, module.compute);
  let writing = null;
  model.on("change:params", () => {
    clearTimeout(writing);
    writing = setTimeout(() => to_address(state.spec, state.params), 200);
  });
  module.render({ model, el: place });
  place.dataset.ready = "true";
};

export const start = (places) =>
  Promise.all([...places].map((place) => begin(place).catch((error) => {
    console.error(error);
    place.querySelector("p").textContent = "This figure could not be started.";
  })));
