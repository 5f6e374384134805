"use strict";
// Builds a note from the JSON that lies in its page.
const note = JSON.parse(document.getElementById("note").textContent);
const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text) element.textContent = text;
  return element;
};
const by = make("div", "by");
by.append(make("span", "who", note.who), make("time", "", note.time));
const text = make("div", "text");
for (const paragraph of note.text) text.append(make("p", "", paragraph));
document.getElementById("app").append(make("h1", "t", note.title), by, text);
document.title = `${note.title}｜云汀工坊`;
