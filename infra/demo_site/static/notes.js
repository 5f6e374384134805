"use strict";
// The entries exist only as JSON: without this script the list stays empty.
fetch("/js/entries.json")
  .then((response) => response.json())
  .then((entries) => {
    const list = document.getElementById("notes");
    for (const entry of entries) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.className = "note";
      link.href = entry.path;
      link.textContent = entry.title;
      const date = document.createElement("span");
      date.className = "date";
      date.textContent = entry.date;
      item.append(link, date);
      list.append(item);
    }
  });
