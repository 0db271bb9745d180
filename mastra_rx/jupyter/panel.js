// The panel: buttons and a slider around the HTML that Python makes of the snapshot at `position`.

function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "mxc-panel";
  const bar = document.createElement("div");
  bar.className = "mxc-bar";
  const button = document.createElement("button");
  button.type = "button";
  const slider = document.createElement("input");
  slider.type = "range";
  slider.min = "0";
  slider.setAttribute("aria-label", "position in the run");
  const label = document.createElement("output");
  const view = document.createElement("div");
  bar.append(button, slider, label);
  root.append(bar, view);
  el.append(root);

  const open = new Set(); // folds that the reader opened, by key
  view.addEventListener(
    "toggle",
    (event) => {
      const key = event.target.dataset.key;
      if (event.target.open) open.add(key);
      else if (event.target.isConnected) open.delete(key);
    },
    true,
  );

  function paint() {
    view.innerHTML = model.get("html");
    for (const fold of view.querySelectorAll("details")) fold.open = open.has(fold.dataset.key);
  }

  function control() {
    const following = model.get("following");
    const last = Math.max(0, model.get("count") - 1);
    slider.max = String(last);
    if (document.activeElement !== slider || following) slider.value = String(model.get("position"));
    label.textContent = model.get("label");
    const over = model.get("over");
    button.textContent = following && !over ? "❚❚ pause" : following ? "✓ newest" : over ? "⇥ newest" : "▶ live";
    button.disabled = following && over;
  }

  function go(following, position) {
    model.set("following", following);
    if (position !== null) model.set("position", position);
    model.save_changes();
    control();
  }

  button.addEventListener("click", () => go(!model.get("following"), null));
  slider.addEventListener("input", () => go(false, Number(slider.value)));

  const events = "change:count change:position change:label change:following change:over";
  model.on("change:html", paint);
  model.on(events, control);
  paint();
  control();
  return () => {
    model.off("change:html", paint);
    model.off(events, control);
  };
}

export default { render };
