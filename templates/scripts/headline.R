# Print the headline of a study: of each comparison, the estimate of the report that is a mean of answers.
arguments <- commandArgs(trailingOnly = TRUE)
file <- if (length(arguments)) arguments[1] else "headline.csv"
rows <- if (grepl("\\.parquet$", file)) {
  as.data.frame(arrow::read_parquet(file))
} else if (grepl("\\.jsonl$", file)) {
  jsonlite::stream_in(file(file), verbose = FALSE)
} else {
  read.csv(file, encoding = "UTF-8", colClasses = "character", na.strings = NULL)
}
for (part in split(rows, rows[c("comparison", "estimate")], drop = TRUE, sep = "\t")) {
  estimate <- weighted.mean(as.numeric(part$value), as.numeric(part$weight))
  people <- length(unique(part$annotator))
  line <- sprintf(
    "%s\t%.6f\t%d annotators, %d answers\t%s", part$comparison[1], estimate, people, nrow(part), part$estimate[1]
  )
  writeLines(line, useBytes = TRUE)
}
